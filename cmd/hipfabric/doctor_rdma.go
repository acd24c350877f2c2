package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/rdma"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

type rdmaFlags struct {
	doctorFlags
	peers   []string
	library string
	devices []string
}

func newDoctorRdma() *cobra.Command {
	f := &rdmaFlags{}
	cmd := &cobra.Command{
		Use:   "rdma [ADDRESS]",
		Short: "Say what this host has for RDMA and what is wrong with it, and try queue pairs with another host",
		Long: `Show this host's RDMA devices, ports, GIDs, MTU, link and bus, locked memory, kernel modules and device files, have each port
write to itself, and say what is wrong, each finding with the command that mends it. --peer finds the way to an address, where
nothing need run. With an ADDRESS, at which the other host listens (--listen), queue pairs are tried on every rail between the
two, both ways, every byte looked at. Without RDMA it says so. docs/doctor.md explains the findings.

The exit code is 0 when no finding has the severity error; else 3 when this host is what is wrong or the peer has another
secret, 4 when it is the peer or the way there, 5 when the peer has another version, 6 when bytes were wrong, and 7 when a device
failed. --listen serves one peer after the other and exits with 0 when interrupted.`,
		Example: `  hipfabric doctor rdma                                                     this host
  hipfabric doctor rdma --peer 10.0.1.2                                     and the way to an address
  hipfabric doctor rdma --listen 10.0.1.2:7999 --secret-file hipfabric.key  on one host
  hipfabric doctor rdma 10.0.1.2:7999 --secret-file hipfabric.key           on the other`,
		Args: rdmaArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.peers, "peer", nil, "find the way to these addresses as well, at most 64: route, neighbour, the largest packet, the port whose subnet it is in")
	flags.StringSliceVar(&f.listen, "listen", nil, "let other hosts try queue pairs, at these addresses of this host, host or host:port, at most 8")
	flags.StringVar(&f.secretFile, "secret-file", "", "file with a secret, needed beyond loopback (see keygen); default: "+launch.SecretFile)
	flags.BoolVar(&f.insecure, "insecure", false, "go beyond loopback without a secret: anyone who reaches the port can try queue pairs")
	flags.StringVar(&f.library, "library", "", "the libibverbs; default: libibverbs.so.1 as the loader finds it")
	flags.StringSliceVar(&f.devices, "device", nil, "only these RDMA devices; default: all")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Minute, "of all of it")
	flags.BoolVar(&f.once, "once", false, "with --listen: end after one peer")
	flags.BoolVar(&f.asJSON, "json", false, "as one JSON document")
	return cmd
}

func rdmaArgs(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fabric.Invalidf("doctor rdma asks one listening host, and %q is a second address; addresses where nothing runs are written --peer %s", args[1], args[1])
	}
	return nil
}

const maxPeers = 64

func (f *rdmaFlags) run(cmd *cobra.Command, args []string) error {
	listening := cmd.Flags().Changed("listen")
	switch {
	case listening && len(args) > 0:
		return fabric.Invalidf("--listen waits for another host, and %q asks one: give one of the two", args[0])
	case f.once && !listening:
		return fabric.Invalidf("--once belongs to --listen")
	case f.timeout <= 0:
		return fabric.Invalidf("--timeout is %v; it must be above 0", f.timeout)
	case len(f.peers) > maxPeers:
		return fabric.Invalidf("--peer names %d addresses; at most %d are allowed", len(f.peers), maxPeers)
	}
	if slices.Contains(f.devices, "") {
		return fabric.Invalidf("--device has an empty name; give the devices' names, such as --device mlx5_0,mlx5_1")
	}
	for _, peer := range f.peers {
		if strings.Contains(peer, "/") || peer == "" || strings.Count(peer, ":") == 1 {
			return fabric.Invalidf("--peer %q is no host: a name or an address, without port", peer)
		}
	}
	if !cmd.Flags().Changed("secret-file") && !f.insecure {
		f.secretFile = os.Getenv(launch.SecretFile)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
	defer stop()
	if listening {
		return f.serveRdma(ctx, cmd)
	}
	q := rdma.Question{Reach: f.peers, Timeout: f.timeout}
	if len(args) > 0 {
		e, hint, err := f.ends(args)
		if err != nil {
			return err
		}
		e.Listen, e.Logger = nil, slog.New(slog.DiscardHandler)
		q.Ends, q.FarCommand = e, "hipfabric doctor rdma --listen "+ranks.Quote(e.Peer)+hint
	}
	report, err := rdma.Examine(ctx, f.system(), q, stages(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	if f.asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = writeRdma(cmd.OutOrStdout(), report)
	}
	return firstError(err, rdmaVerdict(report))
}

func (f *rdmaFlags) system() *rdma.System {
	s := rdma.Here(f.library)
	s.Only = f.devices
	return s
}

func (f *rdmaFlags) serveRdma(ctx context.Context, cmd *cobra.Command) error {
	for _, flag := range []string{"peer", "timeout", "json"} {
		if cmd.Flags().Changed(flag) {
			return fabric.Invalidf("--%s belongs to the asking host, and --listen makes this the other", flag)
		}
	}
	e, hint, err := f.ends(f.listen)
	if err != nil {
		return err
	}
	e.Logger = logger(cmd, false)
	out := cmd.ErrOrStderr()
	_, _ = fmt.Fprintln(out, "run on the other host:")
	for _, address := range e.Listen {
		_, _ = fmt.Fprintf(out, "  hipfabric doctor rdma %s%s\n", ranks.Quote(address), hint)
	}
	_, _ = fmt.Fprintf(out, "waiting at %s\n", strings.Join(e.Listen, ", "))
	return rdma.Serve(ctx, f.system(), e, f.once, func(line string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), line) })
}

// rdmaVerdict is the error that gives the exit code.
func rdmaVerdict(r *rdma.Report) error {
	kinds := map[string]error{
		rdma.Unauthorized: fabric.ErrUnauthorized, rdma.Mismatch: fabric.ErrMismatch, "wrong-bytes": measure.ErrWrong, "device-failed": fabric.ErrDevice, "self-test": fabric.ErrDevice,
	}
	way := []string{rdma.Busy, rdma.NotMet, "cut-short", "no-rail", "rail-failed", "large-lost", "no-route", "silent-neighbour"}
	var u unfit
	for _, finding := range r.Findings {
		if finding.Severity != doctor.Error {
			continue
		}
		kind := kinds[finding.Code]
		switch {
		case kind != nil:
		case finding.Host == rdma.ThePeer || slices.Contains(way, finding.Code):
			kind = fabric.ErrPeerFailed
		default:
			kind = fabric.ErrUnsupported
		}
		u = append(u, kind)
	}
	if len(u) == 0 {
		return nil
	}
	return u
}

// unfit are the kinds of the findings of severity error.
type unfit []error

func (u unfit) Error() string {
	if len(u) == 1 {
		return "RDMA has 1 finding of severity error"
	}
	return fmt.Sprintf("RDMA has %d findings of severity error", len(u))
}

func (u unfit) Unwrap() []error { return u }
