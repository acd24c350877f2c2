package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// The kinds that are calls on host memory, and the paths that --kind staged goes over.
const (
	kindTCP  = "tcp"
	kindRoCE = "roce"
)

func wires() []string { return []string{kindTCP, kindRoCE} }

// wireFlags say what lies under the calls.
type wireFlags struct {
	over    string
	hcas    []string
	class   int
	mailbox string
}

func (f *wireFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.over, "over", kindTCP, "of --kind staged, what moves the bytes between hosts: tcp or roce")
	flags.StringSliceVar(&f.hcas, "hca", nil, "of roce, ports of RoCE NICs: dev, dev:port or dev:port:gid, = before it for one name alone, ^ to exclude; default: all that are active")
	flags.IntVar(&f.class, "traffic-class", 0, "of roce's packets: DSCP times 4, plus ECN; 0 to 255")
	flags.StringVar(&f.mailbox, "mailbox", "0", "of --kind staged over roce, up to how many bytes a rank, as 64K, a call is one kernel launch; 0 is 64K, off is none")
	_ = cmd.RegisterFlagCompletionFunc("over", cobra.FixedCompletions(wires(), cobra.ShellCompDirectiveNoFileComp))
}

// apply sets the path that kind goes by.
func (f *wireFlags) apply(cmd *cobra.Command, kind string, cfg *hipfabric.Config) error {
	path := kind
	if kind == kindStaged {
		path = f.over
	} else if cmd.Flags().Changed("over") {
		return fabric.Invalidf("--over belongs to --kind %s", kindStaged)
	}
	if !slices.Contains(wires(), path) {
		return fabric.Invalidf("unknown path %q in --over; %s", path, suggest(path, wires()))
	}
	for _, name := range []string{"hca", "traffic-class"} {
		if cmd.Flags().Changed(name) && path != kindRoCE {
			return fabric.Invalidf("--%s belongs to roce; --kind is %s, over %s", name, kind, path)
		}
	}
	if cmd.Flags().Changed("mailbox") && (kind != kindStaged || path != kindRoCE) {
		return fabric.Invalidf("--mailbox belongs to --kind %s --over %s; --kind is %s, over %s", kindStaged, kindRoCE, kind, path)
	}
	var err error
	if cfg.MailboxBytes, err = mailboxBytes(f.mailbox); err != nil {
		return err
	}
	cfg.Paths, cfg.HCAs, cfg.TrafficClass = []string{path}, f.hcas, f.class
	return nil
}

// mailboxBytes reads --mailbox.
func mailboxBytes(s string) (int, error) {
	switch s {
	case "0":
		return 0, nil
	case "off":
		return hipfabric.NoMailbox, nil
	}
	n, err := measure.ParseSize(s)
	if err != nil {
		return 0, fabric.Invalidf("--mailbox is %q; bytes, as 64K, 0 for the default, or off", s)
	}
	return n, nil
}
