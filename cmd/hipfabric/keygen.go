package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
)

// defaultKey is the secret file that keygen writes unless told otherwise.
const defaultKey = "hipfabric.key"

func newKeygen() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "keygen [FILE|-]",
		Short: "Draw a group's secret",
		Long: `Draw 32 random bytes and write them, as 64 hexadecimal digits, to FILE (` + defaultKey + `) with mode 0600, or to standard
output for -. Every rank of a group that goes beyond loopback needs the same secret. A FILE that is there is kept, unless
--force is given.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fabric.Invalidf("keygen takes one file, and %q is a second", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := defaultKey
			if len(args) == 1 {
				file = args[0]
			}
			return keygen(cmd, file, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE")
	return cmd
}

func keygen(cmd *cobra.Command, file string, force bool) error {
	secret, err := ranks.NewSecret()
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := cmd.OutOrStdout().Write(secret)
		return err
	}
	if file == "" {
		return fabric.Invalidf("the file's name is empty; leave it out for %s", defaultKey)
	}
	if err := writeNew(file, secret, force); err != nil {
		return err
	}
	full, err := filepath.Abs(file)
	if err != nil {
		full = file
	}
	word := ranks.Quote(full)
	_, err = fmt.Fprintf(cmd.OutOrStdout(), `%s
Copy it to every host, readable by its owner only:  scp -p %s %s
Name it to each rank:  HIPFABRIC_SECRET_FILE=%s, Config.SecretFile or --secret-file %s
`, full, word, ranks.Quote("HOST:"+full), word, word)
	return err
}

// writeNew puts the whole secret under the name at once, so that no rank ever reads half of one.
func writeNew(file string, secret []byte, force bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".hipfabric-key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	defer func() { err = errors.Join(err, removed(f.Name())) }()
	_, err = f.Write(secret)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the secret: %w", err)
	}
	if force {
		return os.Rename(f.Name(), file)
	}
	if err = os.Link(f.Name(), file); errors.Is(err, fs.ErrExist) {
		return fabric.Invalidf("%s is there already and ranks may be using it; --force replaces it", file)
	}
	return err
}

// removed removes a file that may be gone.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
