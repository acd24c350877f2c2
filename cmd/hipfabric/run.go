package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/ranks"
	"github.com/hipfabric/hipfabric/fabric"
)

// defaultPort is where rank 0 listens when only its host is known.
const defaultPort = 29555

type runFlags struct {
	world  int
	hosts  []string
	port   int
	master string
	ssh    string
	env    []string
	grace  time.Duration
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run (-n N | --hosts a,b) [flags] -- COMMAND [ARG...]",
		Short: "Start one process a rank, here or through ssh, and look after them",
		Long: `Start COMMAND once a rank, prefix each line of its output with the rank, and end when the last rank has ended.

Each rank finds who it is in its environment, as hipfabric.FromEnv reads it:
  HIPFABRIC_RANK         0 to world-1
  HIPFABRIC_WORLD        number of ranks
  HIPFABRIC_LOCAL_RANK   index among the ranks of its host
  HIPFABRIC_MASTER       where rank 0 is met: file:PATH for local ranks, host:port for --hosts
  HIPFABRIC_SECRET_FILE  a file, mode 0600, with a secret drawn for this run
  HIPFABRIC_STATUS       the socket at which "hipfabric status" asks the rank
Everything else of the environment is passed on to local ranks, except HIPFABRIC_*, so that a run within a run starts
afresh; to other hosts goes nothing. --env names what goes to the ranks in any case.
Standard input is empty.

When a rank fails the others get SIGTERM, and SIGKILL after --grace. The exit code is that of the first rank that failed,
128 and the signal's number when a signal ended it. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded;
the third SIGINT or SIGTERM kills. Each rank has a process group of its own, and what it leaves in it ends with it.

With --hosts, one rank a host (host:2 is two of them) starts through ssh in the same folder as here. The far host needs a
POSIX shell and COMMAND, no hipfabric. The secret, the environment and the command travel through ssh's standard input,
so that no process list shows them. A rank ends when its ssh does.`,
		Example: `  hipfabric run -n 2 -- ./engine --model m
  hipfabric run --hosts gpu1,gpu2 --env LD_LIBRARY_PATH -- ./engine
  hipfabric run --hosts me@10.0.0.1:2,me@10.0.0.2:2 --ssh "ssh -i key" -- ./engine`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.IntVarP(&f.world, "ranks", "n", 0, fmt.Sprintf("local ranks, 1 to %d", fabric.MaxWorld))
	flags.StringSliceVar(&f.hosts, "hosts", nil, "hosts in rank order, as ssh knows them: host, user@host, host:slots")
	flags.IntVar(&f.port, "port", defaultPort, "port of rank 0, on the first host")
	flags.StringVar(&f.master, "master", "", "address of rank 0 as the ranks reach it, when the first host's name is not that, as where /etc/hosts makes it 127.0.1.1: host or host:port")
	flags.StringVar(&f.ssh, "ssh", ranks.DefaultSSH, "ssh command with its arguments, split at blanks")
	flags.StringSliceVar(&f.env, "env", nil, "variables for the ranks: NAME of here, or NAME=VALUE")
	flags.DurationVar(&f.grace, "grace", ranks.Grace, "from SIGTERM to SIGKILL for a rank that must end")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, argv []string) error {
	return supervise(func() (*ranks.Job, error) { return f.job(cmd, argv) }, ranks.Options{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(), Grace: f.grace, Expendable: -1})
}

func (f *runFlags) job(cmd *cobra.Command, argv []string) (*ranks.Job, error) {
	local, remote := cmd.Flags().Changed("ranks"), len(f.hosts) > 0
	switch {
	case local && remote:
		return nil, fabric.Invalidf("-n and --hosts exclude each other: with --hosts, host:slots says how many ranks a host has")
	case !local && !remote:
		return nil, fabric.Invalidf("how many ranks? give -n N for local ranks, or --hosts a,b")
	case f.grace <= 0:
		return nil, fabric.Invalidf("--grace is %v; it must be above 0", f.grace)
	case local:
		for _, name := range []string{"port", "master", "ssh"} {
			if cmd.Flags().Changed(name) {
				return nil, fabric.Invalidf("--%s belongs to --hosts; local ranks meet through a file", name)
			}
		}
		return ranks.Local(f.world, argv, f.env)
	}
	master, err := f.address()
	if err != nil {
		return nil, err
	}
	env, err := ranks.Named(f.env)
	if err != nil {
		return nil, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the folder to start in: %w", err)
	}
	return ranks.Remote(ranks.Hosts{Names: f.hosts, Master: master, SSH: f.ssh, Folder: folder, Env: env, Grace: f.grace}, argv)
}

// address is rank 0's host:port.
func (f *runFlags) address() (string, error) {
	if f.port < 1 || f.port > 65535 {
		return "", fabric.Invalidf("--port is %d, outside 1..65535", f.port)
	}
	if f.master == "" {
		return ranks.MasterOf(f.hosts, f.port)
	}
	return withPort(f.master, f.port)
}

// withPort completes host, host:port, an IPv6 address or a bracketed one with port.
func withPort(address string, port int) (string, error) {
	if host, given, err := net.SplitHostPort(address); err == nil {
		if n, err := strconv.Atoi(given); err != nil || n < 1 || n > 65535 {
			return "", fabric.Invalidf("port %q of %q is outside 1..65535", given, address)
		}
		if host == "" {
			return "", fabric.Invalidf("%q has no host; name the address that the other ranks reach", address)
		}
		return address, nil
	}
	host := strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if host == "" || strings.ContainsAny(host, "[] /") {
		return "", fabric.Invalidf("%q is no host or host:port", address)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// supervise makes a job and runs it with this process's signals forwarded to it, and removes what it left.
func supervise(prepare func() (*ranks.Job, error), o ranks.Options) error {
	signals := make(chan os.Signal, 16)
	if forwarded := ranks.Forwarded(); len(forwarded) > 0 {
		signal.Notify(signals, forwarded...) // first, so that no signal finds a job and nobody to remove it
		defer signal.Stop(signals)
	}
	job, err := prepare()
	if err != nil {
		return err
	}
	o.Signals = signals
	code, err := job.Run(o)
	if err = errors.Join(err, job.Close()); err == nil && code != 0 {
		err = childCode(code)
	}
	return err
}
