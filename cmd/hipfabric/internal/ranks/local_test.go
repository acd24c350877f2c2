//go:build unix

package ranks

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

const patience = 2 * time.Minute

// output collects what a Job writes and tells when a text has appeared.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(o.String(), text) }, patience, 5*time.Millisecond, "no %q in the output", text)
}

// gone says whether nobody has pid any more; a zombie that nobody reaped counts as gone.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

// shell starts world ranks of a script and gives the Job's folder, the output and a channel with the code.
func shell(t *testing.T, world int, script string, o Options, extra ...string) (dir string, out *output, code <-chan int) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	j, err := Local(world, []string{"/bin/sh", "-c", script}, extra)
	require.NoError(t, err)
	out = &output{}
	o.Stdout, o.Stderr = out, out
	codes := make(chan int, 1)
	go func() {
		code, err := j.Run(o)
		assert.NoError(t, err)
		assert.NoError(t, j.Close())
		codes <- code
	}()
	return j.dir, out, codes
}

func await(t *testing.T, codes <-chan int) int {
	t.Helper()
	select {
	case code := <-codes:
		left, err := os.ReadDir(os.Getenv("TMPDIR"))
		require.NoError(t, err)
		assert.Empty(t, left, "the Job's folder is left behind")
		return code
	case <-time.After(patience):
		t.Fatal("the ranks have not ended")
		return 0
	}
}

func pidIn(t *testing.T, text, key string) int {
	t.Helper()
	_, after, found := strings.Cut(text, key)
	require.True(t, found, "no %q in %q", key, text)
	pid, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return pid
}

func TestARankKnowsWhoItIs(t *testing.T) {
	dir, out, codes := shell(t, 3, `echo "$HIPFABRIC_RANK of $HIPFABRIC_WORLD, local $HIPFABRIC_LOCAL_RANK, at $HIPFABRIC_MASTER"
		echo "secret of $(wc -c <"$HIPFABRIC_SECRET_FILE"), mode $(ls -l "$HIPFABRIC_SECRET_FILE" | cut -c1-10), folder $(ls -ld "$(dirname "$HIPFABRIC_SECRET_FILE")" | cut -c1-10)" >&2`, Options{Expendable: -1})
	require.Zero(t, await(t, codes))
	for _, r := range []string{"0", "1", "2"} {
		assert.Contains(t, out.String(), "["+r+"] "+r+" of 3, local "+r+", at file:"+filepath.Join(dir, "master")+"\n")
		assert.Contains(t, out.String(), "["+r+"] secret of 65, mode -rw-------, folder drwx------\n")
	}
}

func TestARunWithinARunStartsAfresh(t *testing.T) {
	for _, name := range []string{"RANK", "STATUS", "LISTEN", "NAME"} {
		t.Setenv("HIPFABRIC_"+name, "outer-"+name)
	}
	_, out, codes := shell(t, 1, `env | grep "^HIPFABRIC_"`, Options{Expendable: -1}, "HIPFABRIC_NAME")
	require.Zero(t, await(t, codes))
	assert.Contains(t, out.String(), "[0] HIPFABRIC_RANK=0\n")
	assert.Contains(t, out.String(), "[0] HIPFABRIC_NAME=outer-NAME\n", "which the user names")
	assert.Equal(t, 1, strings.Count(out.String(), "outer"), out)
}

func TestTheFirstFailureIsTheCodeAndEndsTheOthers(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         int
	}{
		{"a code", `if [ $HIPFABRIC_RANK = 1 ]; then exit 7; fi; trap 'exit 9' TERM; sleep 1000 & wait`, 7},
		{"a signal", `if [ $HIPFABRIC_RANK = 1 ]; then kill -KILL $$; fi; sleep 1000`, 137},
		{"deaf to SIGTERM", `if [ $HIPFABRIC_RANK = 1 ]; then exit 5; fi; trap '' TERM; while :; do sleep 0.2; done`, 5},
		{"stopped", `if [ $HIPFABRIC_RANK = 1 ]; then exit 6; fi; kill -STOP $$; exit 0`, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, codes := shell(t, 3, c.script, Options{Expendable: -1, Grace: 300 * time.Millisecond})
			assert.Equal(t, c.want, await(t, codes))
		})
	}
}

func TestAnExpendableRankEndsNobody(t *testing.T) {
	_, out, codes := shell(t, 2, `if [ $HIPFABRIC_RANK = 1 ]; then kill -KILL $$; fi; while kill -0 $PPID && ! [ -e $HIPFABRIC_SECRET_FILE.done ]; do
		sleep 0.05; echo waited; : >$HIPFABRIC_SECRET_FILE.done; done; exit 4`, Options{Expendable: 1})
	assert.Equal(t, 4, await(t, codes))
	assert.Contains(t, out.String(), "[0] waited")
}

func TestWhatARankLeavesBehindEnds(t *testing.T) {
	_, out, codes := shell(t, 1, `sleep 1000 & echo "child $!"; exit 0`, Options{Expendable: -1, Grace: time.Second})
	assert.Zero(t, await(t, codes))
	child := pidIn(t, out.String(), "child ")
	assert.Eventually(t, func() bool { return gone(child) }, patience, 5*time.Millisecond)
}

func TestGrandchildrenEndWithTheirRank(t *testing.T) {
	_, out, codes := shell(t, 2, `if [ $HIPFABRIC_RANK = 1 ]; then while ! [ -e $HIPFABRIC_SECRET_FILE.up ]; do sleep 0.02; done; exit 3; fi
		sh -c 'sleep 1000 & echo "grandchild $!"; : >$HIPFABRIC_SECRET_FILE.up; wait'; exit 0`, Options{Expendable: -1})
	assert.Equal(t, 3, await(t, codes))
	child := pidIn(t, out.String(), "grandchild ")
	assert.Eventually(t, func() bool { return gone(child) }, patience, 5*time.Millisecond)
}

func TestSignalsAreForwarded(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		name string
	}{{syscall.SIGINT, "INT"}, {syscall.SIGTERM, "TERM"}, {syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}} {
		t.Run(c.name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			_, out, codes := shell(t, 2, `trap 'echo got `+c.name+`; exit 0' `+c.name+`; echo ready $HIPFABRIC_RANK; while :; do sleep 0.02; done`,
				Options{Expendable: -1, Signals: signals})
			out.await(t, "ready 0")
			out.await(t, "ready 1")
			signals <- c.sig
			assert.Zero(t, await(t, codes))
			assert.Contains(t, out.String(), "[0] got "+c.name)
			assert.Contains(t, out.String(), "[1] got "+c.name)
		})
	}
}

func TestTheThirdInterruptKills(t *testing.T) {
	signals := make(chan os.Signal, 3)
	_, out, codes := shell(t, 2, `trap 'echo deaf' INT; echo ready $HIPFABRIC_RANK; while :; do sleep 0.02; done`, Options{Expendable: -1, Signals: signals})
	out.await(t, "ready 0")
	out.await(t, "ready 1")
	for range 3 {
		signals <- syscall.SIGINT
	}
	assert.Equal(t, 137, await(t, codes))
}

func TestNobodyReadingEndsTheRanks(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGPIPE
	_, _, codes := shell(t, 2, `sleep 1000`, Options{Expendable: -1, Signals: signals})
	assert.Equal(t, 141, await(t, codes))
}

// It is for the race detector: a barred rank is signalled again while it ends.
func TestABarredRankMayBeSignalledAgain(t *testing.T) {
	for range 200 {
		r := &rank{}
		r.signal(syscall.SIGTERM)
		again := make(chan struct{})
		go func() {
			defer close(again)
			for range 20 {
				r.signal(syscall.SIGTERM)
			}
		}()
		assert.Equal(t, exit{rank: r, code: 143}, r.run(Grace))
		<-again
	}
}

func TestRanksNeverMixWithinALine(t *testing.T) {
	_, out, codes := shell(t, 4, `i=0; while [ $i -lt 200 ]; do printf "a"; printf "b$HIPFABRIC_RANK" >&2; printf "b\n"; printf "c\n" >&2; i=$((i+1)); done`, Options{Expendable: -1})
	require.Zero(t, await(t, codes))
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	assert.Len(t, got, 4*2*200)
	for _, line := range got {
		who := line[:min(len(line), 4)]
		assert.Contains(t, []string{who + "ab", who + "b" + who[1:2] + "c"}, line)
	}
}

func TestACommandThatIsNotThereIsNamed(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	j, err := Local(2, []string{"no-such-program-here"}, nil)
	require.NoError(t, err)
	_, err = j.Run(Options{Expendable: -1, Stdout: &output{}, Stderr: &output{}})
	require.NoError(t, j.Close())
	assert.ErrorContains(t, err, "no-such-program-here is neither a file nor in PATH")
}

func TestBadWorldsAreRefused(t *testing.T) {
	for _, world := range []int{-1, 0, fabric.MaxWorld + 1} {
		_, err := Local(world, []string{"true"}, nil)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, strconv.Itoa(world)+" ranks are outside 1..64")
	}
	_, err := Local(1, nil, nil)
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatIsLostIsSaid(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	j, err := Local(1, []string{"/bin/sh", "-c", "echo lost"}, nil)
	require.NoError(t, err)
	defer j.Close()
	code, err := j.Run(Options{Stdout: full{}, Stderr: &output{}, Expendable: -1})
	assert.Zero(t, code, "the rank itself ended well")
	assert.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "output could not be written")
}
