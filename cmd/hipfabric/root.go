package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/fabric"
)

// newRoot builds the commands; line is the command line, which demo and perf start ranks with.
func newRoot(line []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "hipfabric",
		Short: "Start, measure and inspect groups of ranks",
		Long: `Start, measure and inspect groups of ranks.

Exit codes: 0 ok, 1 other, 2 usage or an invalid setting, 3 environment, unsupported or unauthorized, 4 a peer failed,
timeout or aborted, 5 mismatch or desync, 6 wrong data, 7 device. run returns the
code of the rank that failed first, 128 and the signal's number when a signal ended it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newDemo(line), newRun(), newPerf(line), newDoctor(), newStatus(), newKeygen(), newVersion())
	return root
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fabric.Invalidf("unknown command %q; %s", args[0], suggest(args[0], names))
}

// suggest is "did you mean x?" or the list of what there is. cobra knows which names are near.
func suggest(typed string, names []string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if near := all.SuggestionsFor(typed); typed != "" && len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "these are: " + strings.Join(names, ", ")
}

// flagError makes a complaint about flags an ErrInvalid that names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if name, found := strings.CutPrefix(text, "unknown flag: --"); found {
		return fabric.Invalidf("%s has no flag --%s; %s", cmd.CommandPath(), name, suggest("--"+name, flagNames(cmd)))
	}
	return fabric.Invalidf("%s: %s; see %s --help", cmd.CommandPath(), text, cmd.CommandPath())
}

var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// flagNames reads them from the usage text: pflag's own type is no direct dependency.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	for _, match := range flagLine.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, "--"+match[1])
	}
	return names
}

// noArgs refuses arguments of a command that takes none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fabric.Invalidf("%s takes no argument, and %q is one; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
