//go:build unix

package ranks

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/sshtest"
	"github.com/hipfabric/hipfabric/fabric"
)

// faraway starts a script on hosts through a local sshd.
func faraway(t *testing.T, hosts []string, script string, o Options, env ...string) (*output, <-chan int) {
	t.Helper()
	ssh := sshtest.Start(t)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	j, err := Remote(Hosts{Names: hosts, Master: "127.0.0.1:9", SSH: ssh, Folder: folder, Env: append(env, "TMPDIR="+folder), Grace: time.Second},
		[]string{"/bin/sh", "-c", script, "the script", "with 'quotes' $and \"more\"\nlines"})
	require.NoError(t, err)
	out := &output{}
	o.Stdout, o.Stderr, o.Expendable = out, out, -1
	codes := make(chan int, 1)
	go func() {
		code, err := j.Run(o)
		assert.NoError(t, err)
		assert.NoError(t, j.Close())
		codes <- code
	}()
	return out, codes
}

func TestARemoteRankKnowsWhoItIs(t *testing.T) {
	out, codes := faraway(t, []string{"127.0.0.1", "localhost", "127.0.0.1"}, `
		echo "$HIPFABRIC_RANK of $HIPFABRIC_WORLD, local $HIPFABRIC_LOCAL_RANK, at $HIPFABRIC_MASTER, in $(pwd)"
		echo "secret $(cat "$HIPFABRIC_SECRET_FILE") $(ls -l "$HIPFABRIC_SECRET_FILE" | cut -c1-10) $(ls -ld "$(dirname "$HIPFABRIC_SECRET_FILE")" | cut -c1-10)"
		echo "given $1, $MINE, $(umask), $(cat)"; tr '\0' ' ' </proc/$PPID/cmdline; echo; env | grep -c secret`,
		Options{}, "MINE=a 'b'")
	require.Zero(t, await(t, codes), out)
	folder := os.Getenv("TMPDIR")
	for r, local := range []string{"0", "0", "1"} {
		assert.Contains(t, out.String(), fmt.Sprintf("[%d] %d of 3, local %s, at 127.0.0.1:9, in %s\n", r, r, local, folder))
	}
	secrets := map[string]int{}
	for _, line := range strings.Split(out.String(), "\n") {
		if _, after, found := strings.Cut(line, "] secret "); found {
			f := strings.Fields(after)
			secrets[f[0]]++
			assert.Equal(t, []string{"-rw-------", "drwx------"}, f[1:])
		}
	}
	require.Len(t, secrets, 1, "one secret for all")
	for secret, times := range secrets {
		assert.Len(t, secret, 64)
		assert.Equal(t, 3, times)
		assert.Equal(t, 3, strings.Count(out.String(), secret), "the secret is on a command line or in the environment")
	}
	assert.Equal(t, 3, strings.Count(out.String(), "given with 'quotes' $and \"more\"\n"))
	assert.Equal(t, 3, strings.Count(out.String(), "lines, a 'b', 0022, \n"))
}

func TestTheFirstRemoteFailureIsTheCodeAndEndsTheOthers(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         int
	}{
		{"a signal", `[ $HIPFABRIC_RANK = 0 ] || kill -KILL $$; sleep 1000 & echo "child $!"; wait`, 137},
		{"deaf to SIGTERM", `[ $HIPFABRIC_RANK = 0 ] || exit 5; trap '' TERM; sleep 1000 & echo "child $!"; while :; do sleep 0.2; done`, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, codes := faraway(t, []string{"127.0.0.1", "127.0.0.1"}, c.script, Options{Grace: time.Second})
			assert.Equal(t, c.want, await(t, codes), out)
			if strings.Contains(out.String(), "child ") {
				child := pidIn(t, out.String(), "child ")
				assert.Eventually(t, func() bool { return gone(child) }, patience, 5*time.Millisecond)
			}
		})
	}
}

func TestSignalsReachRemoteRanks(t *testing.T) {
	signals := make(chan os.Signal, 1)
	out, codes := faraway(t, []string{"127.0.0.1:2"}, `trap 'echo got USR1; exit 0' USR1; echo ready $HIPFABRIC_RANK; while :; do sleep 0.02; done`, Options{Signals: signals})
	out.await(t, "ready 0")
	out.await(t, "ready 1")
	signals <- syscall.SIGUSR1
	assert.Zero(t, await(t, codes), out)
	assert.Equal(t, 2, strings.Count(out.String(), "got USR1"))
}

func TestARemoteRankEndsWithItsSSH(t *testing.T) {
	ssh := sshtest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	j, err := Remote(Hosts{Names: []string{"127.0.0.1"}, Master: "127.0.0.1:9", SSH: ssh, Folder: "/", Env: []string{"TMPDIR=" + os.Getenv("TMPDIR")}, Grace: time.Second},
		[]string{"/bin/sh", "-c", `sleep 1000 & echo "child $!"; wait`})
	require.NoError(t, err)
	out := &output{}
	codes := make(chan int, 1)
	go func() {
		code, _ := j.Run(Options{Stdout: out, Stderr: out, Expendable: -1})
		codes <- code
	}()
	out.await(t, "child ")
	child := pidIn(t, out.String(), "child ")
	signalGroup(j.ranks[0].cmd.Process.Pid, syscall.SIGKILL)
	assert.Equal(t, 137, <-codes)
	assert.Eventually(t, func() bool { return gone(child) }, patience, 5*time.Millisecond)
	assert.Eventually(t, func() bool { left, _ := os.ReadDir(os.Getenv("TMPDIR")); return len(left) == 0 }, patience, 5*time.Millisecond,
		"the far side leaves its folder")
}

func TestHostsAreSpreadOverRanks(t *testing.T) {
	for _, c := range []struct {
		in   []string
		want []string
		err  string
	}{
		{in: []string{"a", "b"}, want: []string{"a", "b"}},
		{in: []string{"a:2", "me@b"}, want: []string{"a", "a", "me@b"}},
		{in: []string{"[::1]:2", "fe80::1%eth0"}, want: []string{"::1", "::1", "fe80::1%eth0"}},
		{in: []string{"a:0"}, err: `host "a:0": "0" is no number of ranks in 1..64`},
		{in: []string{"a:x"}, err: `"x" is no number of ranks`},
		{in: []string{""}, err: `"" is no host name`},
		{in: []string{"-oProxyCommand=x"}, err: "is no host name"},
	} {
		got, err := spread(c.in)
		assert.Equal(t, c.want, got)
		if c.err != "" {
			require.ErrorIs(t, err, fabric.ErrInvalid)
			assert.ErrorContains(t, err, c.err)
		}
	}
	master, err := MasterOf([]string{"me@[fe80::1%eth0]:2"}, 7)
	require.NoError(t, err)
	assert.Equal(t, "[fe80::1%eth0]:7", master)
}

func TestVariablesAreNamedWithAValueOrForTheirValueHere(t *testing.T) {
	t.Setenv("HIPFABRIC_NAME", "n=1")
	t.Setenv("HIPFABRIC_LISTEN", "::1")
	got, err := Named([]string{"HIPFABRIC_NAME", "A=b=c", "NOWHERE_SET"})
	require.NoError(t, err)
	assert.Equal(t, []string{"HIPFABRIC_NAME=n=1", "A=b=c"}, got)
	_, err = Named([]string{"no name=1"})
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}
