package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// planFlags say what perf measures.
type planFlags struct {
	ops           []string
	sizes         []string
	dtype, redop  string
	iters, warmup int
	inPlace, copy bool
	check         bool
	seed          uint64
	begin, end    string
	factor        float64
	suite         bool
	killAfter     time.Duration
	killRank      int
}

func (f *planFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.ops, "op", []string{"all-gather", "all-reduce", "exchange"}, "operations: "+strings.Join(opNames(), ", ")+", or all")
	flags.StringSliceVar(&f.sizes, "sizes", []string{"16", "4K", "32K", "1M", "4M"}, "bytes that a rank contributes")
	flags.StringVar(&f.dtype, "dtype", "f32", "of reductions: "+strings.Join(names(fabric.DTypes()), ", "))
	flags.StringVar(&f.redop, "redop", "sum", "reduction: "+strings.Join(names(fabric.ReduceOps()), ", "))
	flags.IntVar(&f.iters, "iters", 500, "timed calls of each size")
	flags.IntVarP(&f.warmup, "warmup", "w", 50, "calls before them")
	flags.BoolVar(&f.inPlace, "in-place", false, "of all-gather and all-reduce: the input at its place in the output; without --op it means these two")
	flags.BoolVar(&f.copy, "copy", false, "time a plain copy of each size as well, by all ranks at once: the JSON's copy_us")
	flags.BoolVar(&f.check, "check", true, "check the results first, bit for bit; the exit code tells")
	flags.Uint64Var(&f.seed, "seed", 0, "of the inputs; 0 draws one")
	flags.StringVarP(&f.begin, "minbytes", "b", "", "first size of a sweep, instead of --sizes")
	flags.StringVarP(&f.end, "maxbytes", "e", "", "last size of a sweep")
	flags.Float64VarP(&f.factor, "stepfactor", "f", 2, "each size of a sweep is this times the one before")
	flags.BoolVar(&f.suite, "suite", false, "check 400 gathers of 1 B to 4 MiB, 796 f32 and bf16 sums, 100 exchanges, sends, shifts and variable gathers; ends with PASS or FAIL")
	flags.DurationVar(&f.killAfter, "kill-after", 0, "have one rank kill itself after this time in calls of the first operation and size; the others print a receipt and exit with 4")
	flags.IntVar(&f.killRank, "kill-rank", -1, "which one; default: the last")
	for name, values := range map[string][]string{"op": append(opNames(), "all"), "dtype": names(fabric.DTypes()), "redop": names(fabric.ReduceOps())} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// plan checks what can be checked before the world is known.
func (f *planFlags) plan(cmd *cobra.Command) (measure.Plan, error) {
	p := measure.Plan{Mode: measure.Time, Iters: f.iters, Warmup: f.warmup, Check: f.check, InPlace: f.inPlace, Copy: f.copy, Seed: f.seed, Victim: f.killRank}
	if p.Seed == 0 {
		p.Seed = rand.Uint64()
	}
	if f.inPlace && !cmd.Flags().Changed("op") {
		f.ops = []string{"all-gather", "all-reduce"}
	}
	var err error
	if p.Ops, err = parseOps(f.ops); err != nil {
		return p, err
	}
	if p.DType, err = choose("dtype", f.dtype, fabric.DTypes()); err != nil {
		return p, err
	}
	if p.Reduce, err = choose("redop", f.redop, fabric.ReduceOps()); err != nil {
		return p, err
	}
	if p.Sizes, err = f.allSizes(cmd); err != nil {
		return p, err
	}
	given := cmd.Flags().Changed
	switch {
	case given("kill-after") && f.suite:
		return p, fabric.Invalidf("--suite and --kill-after exclude each other")
	case given("kill-after") && f.killAfter <= 0:
		return p, fabric.Invalidf("--kill-after is %v; it must be above 0", f.killAfter)
	case given("kill-after"):
		p.Mode, p.KillAfterNs = measure.Kill, int64(f.killAfter)
	case given("kill-rank"):
		return p, fabric.Invalidf("--kill-rank says whom --kill-after ends; give both")
	case f.suite:
		for _, name := range []string{"op", "sizes", "dtype", "redop", "iters", "warmup", "in-place", "copy", "check", "minbytes", "maxbytes", "stepfactor"} {
			if given(name) {
				return p, fabric.Invalidf("--suite measures nothing and checks a fixed set; it excludes --%s", name)
			}
		}
		p.Mode = measure.Suite
	}
	return p, nil
}

// settle fills in what depends on the world.
func (f *planFlags) settle(p *measure.Plan, world int) {
	if p.Mode == measure.Kill && f.killRank == -1 {
		p.Victim = world - 1
	}
}

func (f *planFlags) allSizes(cmd *cobra.Command) ([]int, error) {
	given := cmd.Flags().Changed
	sweep := given("minbytes") || given("maxbytes") || given("stepfactor")
	if !sweep {
		return parseSizes(f.sizes)
	}
	if given("sizes") {
		return nil, fabric.Invalidf("--sizes and a sweep (-b, -e, -f) exclude each other")
	}
	bounds := []string{f.begin, f.end}
	if f.begin == "" {
		bounds[0] = "32M" // nccl-tests' default
	}
	if f.end == "" {
		bounds[1] = bounds[0]
	}
	sizes, err := parseSizes(bounds)
	if err != nil {
		return nil, err
	}
	return measure.Sweep(sizes[0], sizes[1], f.factor)
}

func parseSizes(texts []string) ([]int, error) {
	sizes := make([]int, len(texts))
	for i, text := range texts {
		var err error
		if sizes[i], err = measure.ParseSize(text); err != nil {
			return nil, err
		}
	}
	if len(sizes) == 0 {
		return nil, fabric.Invalidf("no sizes; write --sizes 16,4K,1M")
	}
	return sizes, nil
}

// opNames lists what can be timed: a Recv is the other end of a Send.
func opNames() []string {
	var list []string
	for _, op := range fabric.Ops() {
		if op != fabric.Recv {
			list = append(list, op.String())
		}
	}
	return list
}

func parseOps(texts []string) ([]fabric.Op, error) {
	if len(texts) == 1 && texts[0] == "all" {
		texts = opNames()
	}
	if len(texts) == 0 {
		return nil, fabric.Invalidf("no operation; these are: %s, or all", strings.Join(opNames(), ", "))
	}
	var ops []fabric.Op
	for _, text := range texts {
		if text == fabric.Recv.String() {
			return nil, fabric.Invalidf("recv is the other end of a send: --op send measures both")
		}
		op, err := choose("operation", text, fabric.Ops())
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// named is a value with a name that people type.
type named interface {
	comparable
	String() string
}

func names[T named](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.String()
	}
	return list
}

func choose[T named](what, text string, values []T) (T, error) {
	for _, v := range values {
		if v.String() == text {
			return v, nil
		}
	}
	var none T
	return none, fabric.Invalidf("unknown %s %q; %s", what, text, suggest(text, names(values)))
}

func perfArgs(_ *cobra.Command, args []string) error {
	for i, arg := range args {
		switch {
		case i == 0 && arg == "collective":
		case slices.Contains(names(fabric.Ops()), arg):
			return fabric.Invalidf("%q is no subject to measure; an operation is written --op %s", arg, arg)
		case strings.ContainsAny(arg, ".:"):
			return fabric.Invalidf("%q is no subject to measure; an address to listen at is written --listen=%s", arg, arg)
		default:
			return fabric.Invalidf("%q is no subject to measure; %s", arg, suggest(arg, []string{"collective"}))
		}
	}
	return nil
}

func exclude(name string) error {
	return fabric.Invalidf("-n starts local ranks and says who they are; it excludes --%s", name)
}
