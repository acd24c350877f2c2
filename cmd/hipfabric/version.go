package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// wireVersion is that of fabric/bootstrap's hello.
const wireVersion = 2

// build is what is known about this binary.
type build struct {
	Version string `json:"version"` // of the module
	Commit  string `json:"commit"`  // "" when it was not built from a checkout
	Go      string `json:"go"`
	System  string `json:"system"`
	Wire    int    `json:"wire"` // ranks of one group need the same
}

func readBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Wire: wireVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Commit += " (modified)"
		}
	}
	return b
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(b)
			}
			commit := b.Commit
			if commit == "" {
				commit = "unknown"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "hipfabric %s\ncommit    %s\ngo        %s %s\nwire      %d\n", b.Version, commit, b.Go, b.System, b.Wire)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
