package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

// closeTimeout bounds the goodbye of a command that is done.
const closeTimeout = 10 * time.Second

// joinFlags say which rank of which group this process is, where the environment does not.
type joinFlags struct {
	rank, world int
	master      string
	secretFile  string
	insecure    bool
	openTimeout time.Duration
	timeout     time.Duration
	eager       string
	window      string
	lanes       string
	rails       []string
	buffer      string
	spin        time.Duration
	verify      bool
	kind        string
	verbose     bool
	staged      stagedFlags
	wire        wireFlags
}

// shared are the flags that every rank should have alike, so that they go into a command for another host.
func (f *joinFlags) shared() []string {
	return []string{"kind", "over", "traffic-class", "device", "gate", "part", "timeout", "eager", "window", "lanes", "sockbuf", "verify"}
}

func (f *joinFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.rank, "rank", 0, "this process's rank, 0 to world-1; default: HIPFABRIC_RANK")
	flags.IntVar(&f.world, "world", 0, fmt.Sprintf("number of ranks, 1 to %d; default: HIPFABRIC_WORLD", fabric.MaxWorld))
	flags.StringVar(&f.master, "master", "", "rank 0's host:port, or file:PATH on one host; default: HIPFABRIC_MASTER")
	flags.StringVar(&f.secretFile, "secret-file", "", "file with the group's secret, needed beyond loopback (see keygen); default: HIPFABRIC_SECRET_FILE")
	flags.BoolVar(&f.insecure, "insecure", false, "go beyond loopback without a secret: anyone who reaches the port can join")
	flags.StringVar(&f.kind, "kind", kindTCP, "path to measure: "+strings.Join(kinds(), ", ")+" (device memory)")
	flags.DurationVar(&f.openTimeout, "open-timeout", 0, "of the meeting of all ranks; 0 is 5m")
	flags.DurationVar(&f.timeout, "timeout", 0, "of a call without progress; 0 is 30s, negative is none")
	flags.StringVar(&f.eager, "eager", "0", "bytes, as 32K, up to which a call goes out in one write; 0 is 32K")
	flags.StringVar(&f.window, "window", "0", "bytes, as 256K, in flight beyond what was received; 0 is a measured default, -1 no bound")
	flags.StringVar(&f.lanes, "lanes", "0", "connections a pair of ranks, 1 to 64; 0 is 1 within a host and 4 elsewhere; auto measures 1, 2, 4 and 8 first")
	flags.StringSliceVar(&f.rails, "rails", nil, "ways to other hosts: interface prefix, =interface, CIDR, ^ before it to exclude; default: every subnet shared")
	flags.StringVar(&f.buffer, "sockbuf", "auto", "bytes of each socket buffer, as 64K; auto lets the system grow them")
	flags.DurationVar(&f.spin, "spin", 0, "how long a wait spins before it parks; 0 is a measured default")
	flags.BoolVar(&f.verify, "verify", false, "checksum every payload (CRC32C)")
	f.wire.add(cmd)
	f.staged.add(cmd)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log the opening and closing of the group")
}

func kinds() []string { return append(wires(), kindStaged) }

// config merges the environment with the flags that were given.
func (f *joinFlags) config(cmd *cobra.Command) (hipfabric.Config, error) {
	given := cmd.Flags().Changed
	cfg, err := hipfabric.FromEnv()
	switch {
	case alone():
		cfg = hipfabric.Config{SecretFile: os.Getenv(launch.SecretFile), StatusSocket: os.Getenv(launch.Status)}
		if !given("rank") || !given("world") {
			return cfg, fabric.Invalidf("this process is no rank yet: give -n N to start local ranks, --listen on the first of two hosts, " +
				"or --rank, --world and --master; or start it with hipfabric run")
		}
	case err != nil:
		return cfg, err
	}
	for _, set := range []struct {
		flag  string
		apply func()
	}{
		{"rank", func() { cfg.Rank = f.rank }}, {"world", func() { cfg.World = f.world }}, {"master", func() { cfg.Master = f.master }},
		{"secret-file", func() { cfg.SecretFile = f.secretFile }},
	} {
		if given(set.flag) {
			set.apply()
		}
	}
	return cfg, f.apply(cmd, &cfg)
}

// alone says whether the environment names no rank: at most a secret and a status socket, which suit any.
func alone() bool {
	_, err := launch.From(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, launch.SecretFile+"=") || strings.HasPrefix(v, launch.Status+"=")
	}))
	return errors.Is(err, launch.ErrNone)
}

// apply puts what does not depend on the rank into cfg and checks all of it.
func (f *joinFlags) apply(cmd *cobra.Command, cfg *hipfabric.Config) error {
	cfg.OpenTimeout = f.openTimeout
	cfg.Insecure, cfg.Timeout, cfg.SpinFor, cfg.Verify = f.insecure, f.timeout, f.spin, f.verify
	cfg.Rails = f.rails
	if err := f.sockets(cfg); err != nil {
		return err
	}
	if f.timeout < 0 {
		cfg.Timeout = hipfabric.NoTimeout
	}
	if !slices.Contains(kinds(), f.kind) {
		return fabric.Invalidf("unknown kind %q; %s", f.kind, suggest(f.kind, kinds()))
	}
	if err := f.staged.check(cmd, f.kind, cfg); err != nil {
		return err
	}
	if err := f.wire.apply(cmd, f.kind, cfg); err != nil {
		return err
	}
	cfg.Logger = logger(cmd, f.verbose)
	return cfg.Validate()
}

// sockets reads the flags that take a number or a word.
func (f *joinFlags) sockets(cfg *hipfabric.Config) error {
	switch n, err := strconv.Atoi(f.lanes); {
	case f.lanes == "auto":
		cfg.Lanes = hipfabric.LanesAuto
		if folder, err := os.UserCacheDir(); err == nil {
			cfg.LaneCache = filepath.Join(folder, "hipfabric", "lanes.json")
		}
	case err != nil || n < 0:
		return fabric.Invalidf("--lanes is %q; 1 to 64, 0 for the default, or auto", f.lanes)
	default:
		cfg.Lanes = n
	}
	for _, size := range []struct {
		flag, text, word string
		at               int // what the word stands for
		hint             string
		set              *int
	}{
		{"sockbuf", f.buffer, "auto", 0, "bytes, as 64K, or auto", &cfg.SocketBuffer},
		{"window", f.window, "-1", -1, "bytes, as 256K, 0 for the default, or -1 for no bound", &cfg.Window},
		{"eager", f.eager, "0", 0, "bytes, as 32K, or 0 for the default", &cfg.EagerBytes},
	} {
		if *size.set = size.at; size.text == size.word {
			continue
		}
		n, err := measure.ParseSize(size.text)
		if err != nil {
			return fabric.Invalidf("--%s is %q; %s", size.flag, size.text, size.hint)
		}
		*size.set = n
	}
	return nil
}

// logger keeps quiet about what goes well.
func logger(cmd *cobra.Command, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// within opens the group, calls fn and closes. An interrupt aborts the group, so that every rank ends with the reason.
func within(cmd *cobra.Command, cfg hipfabric.Config, fn func(context.Context, *hipfabric.Group) error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
	defer stop()
	g, err := hipfabric.Open(ctx, cfg)
	if err != nil {
		return err
	}
	leave := context.AfterFunc(ctx, func() { g.Abort(errors.New("interrupted")) })
	defer leave()
	err = fn(ctx, g)
	if err == nil {
		err = g.Control().Barrier(ctx) // nobody leaves while another still calls
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closed := g.Close(bounded); err == nil {
		err = closed
	}
	return err
}

func endSignals() []os.Signal { return append([]os.Signal{os.Interrupt}, terminate()...) }
