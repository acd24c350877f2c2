package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

// doctorFlags are those of both ends, and of one or the other.
type doctorFlags struct {
	peer       string
	listen     []string
	secretFile string
	insecure   bool
	lanes      []int
	time       time.Duration
	timeout    time.Duration
	once       bool
	asJSON     bool
}

func newDoctorLinks() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "links",
		Short: "Measure the way to another host and say what is wrong with it",
		Long: `Measure the way between two hosts: addresses, interfaces, MTU, negotiated speed, round trip, loss, the rate each way with 1
to 8 lanes, interrupt moderation, firewalls. Each finding comes with the command that mends it. One host listens, the other
asks, and the table is the asking one's. docs/doctor.md explains the findings.

The exit code is 0 when no finding has the severity error, 3 when the peer has another secret, 5 when it has another version,
and 4 for every other finding of that severity. --listen serves one peer after the other and exits with 0 when interrupted.`,
		Example: `  hipfabric keygen hipfabric.key                                                   once, and copied to both hosts
  hipfabric doctor links --listen 10.0.1.2:7999 --secret-file hipfabric.key       on one
  hipfabric doctor links --peer 10.0.1.2:7999 --secret-file hipfabric.key         on the other`,
		Args: linksArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.peer, "peer", "", "measure the way to the host that listens at this address, host or host:port")
	flags.StringSliceVar(&f.listen, "listen", nil, "be measured at these addresses of this host, host or host:port, at most 8")
	flags.StringVar(&f.secretFile, "secret-file", "", "file with a secret, needed beyond loopback (see keygen); default: "+launch.SecretFile)
	flags.BoolVar(&f.insecure, "insecure", false, "go beyond loopback without a secret: anyone who reaches the port can measure")
	flags.IntSliceVar(&f.lanes, "lanes", []int{1, 2, 4, 8}, fmt.Sprintf("numbers of lanes to measure, each 1 to %d", doctor.MaxLanes))
	flags.DurationVar(&f.time, "time", 500*time.Millisecond, "of each measurement")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "of all of it")
	flags.BoolVar(&f.once, "once", false, "with --listen: end after one peer")
	flags.BoolVar(&f.asJSON, "json", false, "as one JSON document")
	return cmd
}

func linksArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fabric.Invalidf("doctor links takes no argument, and %q is one; an address is written --peer %s", args[0], args[0])
	}
	return nil
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	asking, listening := cmd.Flags().Changed("peer"), cmd.Flags().Changed("listen")
	switch {
	case asking == listening:
		return fabric.Invalidf("give either --listen, on one of the two hosts, or --peer, on the other")
	case asking && f.once:
		return fabric.Invalidf("--once belongs to --listen")
	}
	if !cmd.Flags().Changed("secret-file") && !f.insecure {
		f.secretFile = os.Getenv(launch.SecretFile)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
	defer stop()
	if listening {
		return f.serve(ctx, cmd)
	}
	return f.ask(ctx, cmd)
}

// ends checks the addresses and the secret, and says how a command for the other host names the latter.
func (f *doctorFlags) ends(addresses []string) (e doctor.Ends, hint string, err error) {
	policy := perfFlags{joinFlags: joinFlags{secretFile: f.secretFile, insecure: f.insecure}}
	for _, a := range addresses {
		full, err := withPort(a, defaultPort)
		if err != nil {
			return e, "", err
		}
		if hint, err = policy.secretHint(full); err != nil {
			return e, "", err
		}
		e.Listen = append(e.Listen, full)
	}
	if len(e.Listen) == 0 {
		return e, "", fabric.Invalidf("--listen names no address; name the one that the other host reaches")
	}
	e.Peer, e.Insecure = e.Listen[0], f.insecure
	if f.secretFile != "" {
		e.Secret, err = hipfabric.ReadSecret(f.secretFile)
	}
	return e, hint, err
}

func (f *doctorFlags) serve(ctx context.Context, cmd *cobra.Command) error {
	for _, flag := range []string{"lanes", "time", "timeout", "json"} {
		if cmd.Flags().Changed(flag) {
			return fabric.Invalidf("--%s belongs to --peer: the asking host says what is measured", flag)
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
		_, _ = fmt.Fprintf(out, "  hipfabric doctor links --peer %s%s\n", ranks.Quote(address), hint)
	}
	if active := machine.Firewalls(ctx); len(active) > 0 {
		_, port, _ := net.SplitHostPort(e.Peer)
		_, _ = fmt.Fprintf(out, "%s at work here; the line that opens the port, should it be closed:\n", strings.Join(active, ", "))
		for _, line := range doctor.Pick(active, doctor.Allow(port, "")) {
			_, _ = fmt.Fprintf(out, "  %s\n", line)
		}
	}
	_, _ = fmt.Fprintf(out, "waiting at %s\n", strings.Join(e.Listen, ", "))
	return doctor.Serve(ctx, e, f.once, func(line string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), line) })
}

func (f *doctorFlags) ask(ctx context.Context, cmd *cobra.Command) error {
	e, hint, err := f.ends([]string{f.peer})
	if err != nil {
		return err
	}
	e.Listen, e.Logger = nil, slog.New(slog.DiscardHandler)
	q := doctor.Question{Ends: e, FarCommand: "hipfabric doctor links --listen " + ranks.Quote(e.Peer) + hint, Lanes: f.lanes, Time: f.time, Timeout: f.timeout}
	if err := q.Validate(); err != nil {
		return err
	}
	report, err := doctor.Ask(ctx, q, stages(cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	if f.asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		err = report.Write(cmd.OutOrStdout())
	}
	return firstError(err, verdict(report))
}

// stages tells a person who watches what takes the time.
func stages(w io.Writer) func(string) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return func(stage string) { _, _ = fmt.Fprintln(w, stage) }
}

// verdict is the error that gives the exit code.
func verdict(r *doctor.Report) error {
	n := r.Errors()
	if n == 0 {
		return nil
	}
	kind := fabric.ErrPeerFailed
	for code, other := range map[string]error{doctor.Unauthorized: fabric.ErrUnauthorized, doctor.Mismatch: fabric.ErrMismatch} {
		if slices.ContainsFunc(r.Findings, func(f doctor.Finding) bool { return f.Code == code }) {
			kind = other
		}
	}
	return unsound{n, kind}
}

// unsound is a way with findings of severity error.
type unsound struct {
	errors int
	kind   error
}

func (u unsound) Error() string {
	if u.errors == 1 {
		return "the way to the peer has 1 finding of severity error"
	}
	return fmt.Sprintf("the way to the peer has %d findings of severity error", u.errors)
}

func (u unsound) Unwrap() error { return u.kind }
