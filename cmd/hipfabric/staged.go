package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// kindStaged is --kind for calls on device memory.
const kindStaged = "staged"

// stagedFlags say on which device calls are made, and how.
type stagedFlags struct{ device, gate, library, part string }

func (f *stagedFlags) names() []string { return []string{"device", "gate", "library", "part"} }

func (f *stagedFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.device, "device", gpu.Auto, "of --kind staged: auto (a real GPU where there is one, by local rank, else the software device), hip:N, software, or cuda:N (NVIDIA's driver; unproven)")
	flags.StringVar(&f.gate, "gate", "auto", "of --kind staged, how streams meet the proxy: words, kernels, or auto: words where every device's streams wait on values")
	flags.StringVar(&f.library, "library", "", "of --kind staged: the HIP library's file; default: as the loader finds it")
	flags.StringVar(&f.part, "part", "0", "bytes, as 512K, of the parts in which a staged call moves; 0 is 512K")
	for name, values := range map[string][]string{"device": {gpu.Auto, gpu.Software}, "gate": names(gates())} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

func gates() []stage.Gate { return []stage.Gate{stage.Auto, stage.Words, stage.Kernels} }

// check reads the flags, which mean nothing for another kind.
func (f *stagedFlags) check(cmd *cobra.Command, kind string, cfg *hipfabric.Config) error {
	for _, name := range f.names() {
		if cmd.Flags().Changed(name) && kind != kindStaged {
			return fabric.Invalidf("--%s belongs to --kind %s", name, kindStaged)
		}
	}
	if _, err := choose("gate", f.gate, gates()); err != nil {
		return err
	}
	if _, err := gpu.Parse(f.device); err != nil {
		return err
	}
	if f.part == "0" {
		return nil
	}
	n, err := measure.ParseSize(f.part)
	if err != nil {
		return fabric.Invalidf("--part is %q; bytes, as 512K, or 0 for the default", f.part)
	}
	cfg.PartBytes = n
	return nil
}

// pick opens the device that the flags ask for, before any rank waits for this one.
func (f *stagedFlags) pick(localRank int) (*gpu.Picked, error) {
	choice, err := gpu.Parse(f.device)
	if err != nil {
		return nil, err
	}
	return gpu.Pick(choice, f.library, localRank)
}

// staged is a group's half on device memory.
type staged struct {
	picked *gpu.Picked
	memory *gpu.Memory
	stream hipgo.Stream
	calls  *fabric.StreamCollective
	path   hipfabric.Path // as the group tells it
	small  hipfabric.Path // the mailbox; of no name where the wire has none
	shared string         // which ranks share a GPU; "" is none
}

// openStaged gives g calls on the picked device. All ranks call it.
func openStaged(ctx context.Context, g *hipfabric.Group, picked *gpu.Picked, gate stage.Gate) (*staged, error) {
	s := &staged{picked: picked}
	var err error
	if s.calls, err = g.Device(ctx, hipfabric.GPU{Device: picked.Device, Gate: gate}); err != nil {
		return nil, err
	}
	for _, p := range g.Paths() {
		switch p.Name {
		case kindStaged:
			s.path = p
		case "mailbox":
			s.small = p
		}
	}
	if s.shared, err = sharing(g, picked); err != nil {
		return nil, err
	}
	if s.memory, err = gpu.NewMemory(picked.Device); err != nil {
		return nil, err
	}
	if s.stream, err = picked.Device.NewStream(hipgo.StreamNonBlocking); err != nil {
		return nil, errors.Join(gpu.Kind(err), s.memory.Close())
	}
	return s, nil
}

// close frees what no call uses any more. After a failure that is unknown, and the process's end frees it.
func (s *staged) close(failed error) error {
	if failed != nil {
		return failed
	}
	return errors.Join(gpu.Kind(s.stream.Close()), s.memory.Close())
}

func (s *staged) subject(g *hipfabric.Group) measure.Subject {
	return measure.Subject{Kind: kindStaged, About: s.about(), Host: g.Host(),
		Device: &measure.Device{C: s.calls, Stream: fabric.Stream(s.stream.Raw()), Memory: s.memory}}
}

// about is what the title of a table says.
func (s *staged) about() string {
	what := []string{s.path.Gate + " gate", s.picked.Device.Arch()}
	if s.picked.Software() {
		what[1] = "software device"
	}
	if s.shared != "" {
		what = append(what, s.shared)
	}
	if s.small.Chosen {
		what = append(what, "mailbox")
	}
	return strings.Join(what, ", ")
}

func (s *staged) describe(w io.Writer) {
	_, _ = fmt.Fprintf(w, "device: %v\n%s\n", s.picked, s.path.Reason)
	if s.small.Name != "" {
		_, _ = fmt.Fprintf(w, "mailbox: %s\n", s.small.Reason)
	}
}

// sharing says which ranks have one real GPU between them: the same PCI id on the same host.
func sharing(g *hipfabric.Group, picked *gpu.Picked) (string, error) {
	mine, all := make([]byte, sha256.Size), make([]byte, sha256.Size*g.World())
	if !picked.Software() {
		host, _ := os.Hostname()
		sum := sha256.Sum256([]byte(host + " " + machine.Boot() + " " + picked.Device.PCI()))
		copy(mine, sum[:])
	}
	if err := g.Host().AllGather(all, mine); err != nil {
		return "", err
	}
	var ranks []string
	for r := range g.World() {
		if bytes.Equal(all[r*sha256.Size:][:sha256.Size], mine) {
			ranks = append(ranks, fmt.Sprint(r))
		}
	}
	switch {
	case picked.Software() || len(ranks) < 2:
		return "", nil
	case len(ranks) == g.World():
		return "one GPU shared", nil
	}
	return "one GPU shared by ranks " + strings.Join(ranks, ", "), nil
}
