package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
)

type perfFlags struct {
	joinFlags
	plan     planFlags
	ranks    int
	asRank   bool
	listen   string
	jsonFile string
	rawFile  string
	label    string
	receipt  string
	line     []string // the command line, to start ranks with
}

func newPerf(line []string) *cobra.Command {
	f := &perfFlags{line: line}
	cmd := &cobra.Command{
		Use:   "perf [collective] [flags]",
		Short: "Check and time the operations of a group",
		Long: `Check every operation bit for bit against the reference, then time it: calls back to back, each timed with the monotonic
clock, on rank 0. Rank 0's flags say what is measured; the other ranks follow.

Sizes are the bytes that a rank contributes (its "in"): of an all-gather every rank gets world times as much, and of a
reduce-scatter or an all-to-all the size is the whole of in. A size is rounded down to what the operation takes. send is a
Send there and one back, its time half of both, and covers recv. send-recv is a ring shift. exchange and send pair the ranks
0-1, 2-3 and so on. Columns are nccl-tests': time is the mean, algbw is the operation's bytes (of a gather: all ranks')
over the time, busbw is algbw times 2(n-1)/n for all-reduce, (n-1)/n for gathers, reduce-scatter and all-to-all, 1 otherwise.

With --kind roce they go over queue pairs of RoCE NICs; "hipfabric doctor rdma" says what a host lacks for that.
With --kind staged the calls are made from device memory, over tcp or what --over says: a time is from queueing a call until
its stream has passed it, and queued_p50_us is what the caller spent in queueing it. Over roce small calls are one kernel launch
each (--mailbox). Ranks whose GPU has one PCI id on one
host share it, and the table says so.

--json writes one object a line; the first describes the environment. With --json - the tables go to standard error.
nccl-tests' -b, -e, -f and -w are taken as well; its -n is --iters here, since -n starts ranks.`,
		Example: `  hipfabric perf -n 2
  hipfabric perf -n 4 --op all-reduce -b 8 -e 128M -f 2 --dtype bf16
  hipfabric perf --listen=10.0.0.1 --secret-file key     and, on the other host, the command that it prints
  hipfabric run --hosts a,b -- hipfabric perf --op exchange --sizes 4M
  hipfabric perf -n 2 --suite
  hipfabric run --hosts a,b -- hipfabric perf --kind roce --hca =mlx5_0
  hipfabric perf -n 4 --kill-after 2s`,
		Args: perfArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.IntVarP(&f.ranks, "ranks", "n", 0, "start this many ranks here")
	flags.BoolVar(&f.asRank, "as-rank", false, "be one of the ranks that -n started")
	_ = flags.MarkHidden("as-rank")
	flags.StringVar(&f.listen, "listen", "", "be rank 0 of two hosts at this address, host or host:port, and print the command for the other; bare: this host's only address")
	flags.Lookup("listen").NoOptDefVal = bareListen
	flags.StringVar(&f.jsonFile, "json", "", "file for the results as JSON lines, - for standard output")
	flags.StringVar(&f.rawFile, "raw", "", "file for every sample, as CSV")
	flags.StringVar(&f.label, "label", "", "text that the JSON's first line carries")
	flags.StringVar(&f.receipt, "receipt", "", "new folder for all of it: tables, results, samples, environments, logs and their SHA256SUMS (docs/receipts)")
	f.plan.add(cmd)
	f.add(cmd)
	return cmd
}

func (f *perfFlags) run(cmd *cobra.Command) error {
	plan, err := f.plan.plan(cmd)
	if err != nil {
		return err
	}
	if f.rawFile != "" && f.rawFile == f.jsonFile {
		return fabric.Invalidf("--json and --raw both name %s; give each its own file", f.rawFile)
	}
	if cmd.Flags().Changed("ranks") && !f.asRank {
		return f.start(cmd, plan)
	}
	if cmd.Flags().Changed("listen") {
		if err := f.hint(cmd); err != nil {
			return err
		}
	}
	cfg, err := f.config(cmd)
	if err != nil {
		return err
	}
	f.plan.settle(&plan, cfg.World)
	if err := plan.Validate(cfg.World); err != nil {
		return err
	}
	out := &output{report: &measure.Report{Table: io.Discard}}
	if cfg.Rank == 0 { // before the group, so that no other rank sees it fail
		if out, err = f.output(cmd, &cfg); err != nil {
			return err
		}
	}
	return out.close(f.measureAs(cmd, cfg, plan, out))
}

// measureAs is one rank's part; rank 0's plan is everybody's.
func (f *perfFlags) measureAs(cmd *cobra.Command, cfg hipfabric.Config, plan measure.Plan, out *output) error {
	if f.kind != kindStaged {
		return within(cmd, cfg, func(ctx context.Context, g *hipfabric.Group) error {
			return f.measure(ctx, cmd, cfg, g, measure.Subject{Kind: f.kind, Host: g.Host()}, nil, plan, out)
		})
	}
	gate, err := choose("gate", f.staged.gate, gates())
	if err != nil {
		return err
	}
	picked, err := f.staged.pick(cfg.LocalRank)
	if err != nil {
		return err
	}
	err = within(cmd, cfg, func(ctx context.Context, g *hipfabric.Group) error {
		s, err := openStaged(ctx, g, picked, gate)
		if err != nil {
			return err
		}
		return s.close(f.measure(ctx, cmd, cfg, g, s.subject(g), s, plan, out))
	})
	if err != nil {
		return err // what the device still does is not known
	}
	return picked.Close()
}

// start has local ranks run this very command line.
func (f *perfFlags) start(cmd *cobra.Command, plan measure.Plan) error {
	for _, name := range []string{"rank", "world", "master", "listen", "secret-file"} {
		if cmd.Flags().Changed(name) {
			return exclude(name)
		}
	}
	if f.ranks < 1 || f.ranks > fabric.MaxWorld {
		return fabric.Invalidf("-n is %d, outside 1..%d", f.ranks, fabric.MaxWorld)
	}
	f.plan.settle(&plan, f.ranks)
	if err := plan.Validate(f.ranks); err != nil {
		return err
	}
	// One complaint here is better than one from each rank.
	if err := f.apply(cmd, &hipfabric.Config{World: f.ranks, Master: "file:unused"}); err != nil {
		return err
	}
	expendable := -1
	if plan.Mode == measure.Kill {
		expendable = plan.Victim
	}
	return startSelf(cmd, f.ranks, f.line, expendable)
}

// startSelf runs this program as the ranks of a group; rank 0 speaks for all.
func startSelf(cmd *cobra.Command, world int, line []string, expendable int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to start it as ranks: %w", err)
	}
	argv := append([]string{self, line[0], rankMark}, line[1:]...)
	return supervise(func() (*ranks.Job, error) { return ranks.Local(world, argv, nil) }, ranks.Options{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
		Direct: true, Expendable: expendable})
}

// rankMark, after the command's name, makes a process one of the ranks that it would start otherwise.
const rankMark = "--as-rank"

func isMark(arg string) bool { return arg == rankMark }

// environment is the JSON's first line.
type environment struct {
	Schema string `json:"schema"`
	machine.Facts
	build
	NIC     machine.NIC `json:"nic"`
	Date    string      `json:"date"`
	Label   string      `json:"label"`
	Device  string      `json:"device,omitempty"` // rank 0's, of --kind staged
	Gate    string      `json:"gate,omitempty"`
	Shared  string      `json:"shared,omitempty"` // which ranks have one GPU between them
	Command string      `json:"command"`
}

func (f *perfFlags) measure(ctx context.Context, cmd *cobra.Command, cfg hipfabric.Config, g *hipfabric.Group, subject measure.Subject, s *staged, plan measure.Plan, out *output) error {
	report := out.report
	plan.Receipt = out.receipt != nil
	plan, err := measure.Share(ctx, g.Control(), g.Rank(), plan)
	if err != nil {
		return err
	}
	nic, began := machine.Towards(cfg.Master), time.Now()
	facts := environment{Schema: "hipfabric.environment/1", Facts: machine.Read(), build: readBuild(), NIC: nic,
		Date: time.Now().UTC().Format(time.RFC3339), Label: f.label, Command: "hipfabric " + strings.Join(slices.DeleteFunc(slices.Clone(f.line), isMark), " ")}
	if s != nil {
		facts.Device, facts.Gate, facts.Shared = s.picked.String(), s.path.Gate, s.shared
	}
	if plan.Receipt {
		if err := out.receipt.gather(ctx, g, facts); err != nil {
			return err
		}
	}
	var before machine.Counters
	if g.Rank() == 0 {
		before = machine.Count(nic)
		if err := report.Facts(facts); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(report.Table, "%s\n%s, kernel %s, %d cores, %s\n", nic, facts.CPU, facts.Kernel, facts.Cores, facts.Go); err != nil {
			return err
		}
		if s != nil {
			s.describe(report.Table)
		}
	}
	err = perform(g, subject, plan, report, cmd.OutOrStdout(), cmd.ErrOrStderr())
	if g.Rank() == 0 {
		_, _ = fmt.Fprintln(report.Table, machine.Count(nic).Since(before))
		if err := railReport(report, subject.Peers(), time.Since(began)); err != nil {
			return err
		}
		if plan.Mode == measure.Suite {
			return passed(report.Table, "", err)
		}
	}
	return err
}

// perform does what the plan's mode says.
func perform(g *hipfabric.Group, subject measure.Subject, plan measure.Plan, report *measure.Report, out, progress io.Writer) error {
	switch plan.Mode {
	case measure.Kill:
		receipt, err := measure.RunKill(subject, plan)
		if receipt.Err != nil {
			_, _ = fmt.Fprintln(out, receipt)
		}
		return err
	case measure.Suite:
		if g.Rank() != 0 {
			progress = io.Discard
		}
		tell, stop := watch(progress, "suite")
		tallies, err := measure.RunSuite(subject, plan, tell)
		stop(err)
		if g.Rank() != 0 {
			return err
		}
		if e := report.Tallies(tallies); err == nil {
			err = e
		}
		return err
	default:
		err := measure.Run(subject, plan, report.Add)
		if e := report.Flush(); err == nil {
			err = e
		}
		return err
	}
}

// passed writes the last line that a script looks for.
func passed(out io.Writer, what string, err error) error {
	verdict := "PASS"
	if what != "" {
		verdict += ": " + what
	}
	if err != nil {
		verdict = "FAIL: " + err.Error()
	}
	_, _ = fmt.Fprintln(out, verdict)
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
