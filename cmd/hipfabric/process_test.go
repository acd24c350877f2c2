//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/sshtest"
)

// patience is how long a test waits for what should take a second: the machine may be busy with other tests.
const patience = 5 * time.Minute

// program is hipfabric as a process.
type program struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *watched
	ended          chan struct{}
}

// begin starts hipfabric with args; the test ends it.
func begin(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], args...), stdout: &watched{}, stderr: &watched{}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.code()
	})
	return p
}

// code waits for the end.
func (p *program) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.t.Errorf("%v has not ended by itself\n%s\n%s", p.cmd.Args[1:], p.stdout, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// runs is begin and code.
func runs(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := begin(t, args...)
	return p.code(), p.stdout.String(), p.stderr.String()
}

func TestTheDemoPasses(t *testing.T) {
	began := time.Now()
	code, out, stderr := runs(t, "demo")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.Less(t, time.Since(began), patience)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	assert.Equal(t, "PASS: host memory over tcp; "+demoOn(out)+" over roce on HCAs in memory", lines[len(lines)-1])
	assert.Equal(t, 1, strings.Count(out, "PASS"))
	for _, op := range opNames() {
		assert.Contains(t, out, " "+op+" ")
	}
	assert.Contains(t, out, "p99.9")
	assert.Empty(t, stderr)
}

func TestPerfPrintsATableAndJSON(t *testing.T) {
	file, raw := filepath.Join(t.TempDir(), "out.json"), filepath.Join(t.TempDir(), "raw.csv")
	code, out, stderr := runs(t, "perf", "-n", "2", "--op", "all-reduce,exchange", "--sizes", "16,4K", "--iters", "20", "--warmup", "2", "--label", "a b", "--lanes", "2", "--json", file, "--raw", raw)
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	for _, want := range []string{"MTU", "TCP retransmits", "interface errors", "#wrong", "p99.9", "all-reduce, 2 ranks, tcp, 20 iterations, rank 0's samples", "rail", "127.0.0.1-127.0.0.1"} {
		assert.Contains(t, out, want)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 1+4+1)
	var rails struct {
		Schema string
		Rails  []railLine
	}
	require.NoError(t, json.Unmarshal([]byte(lines[5]), &rails))
	require.Len(t, rails.Rails, 1)
	assert.Equal(t, []any{railsSchema, 1, 2, uint64(0)}, []any{rails.Schema, rails.Rails[0].Peer, rails.Rails[0].Lanes, rails.Rails[0].Lost})
	assert.Greater(t, rails.Rails[0].SentBytes, uint64(4*20*16))
	var env map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &env))
	assert.Equal(t, "a b", env["label"])
	assert.NotContains(t, env["command"], "as-rank")
	for _, key := range []string{"kernel", "go", "commit", "version", "cpu", "cores", "nic", "date", "command"} {
		assert.Contains(t, env, key)
	}
	for _, line := range lines[1:5] {
		var r measure.Result
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&r))
		assert.Equal(t, []any{"hipfabric.perf/1", "tcp", 2, 20, 2}, []any{r.Schema, r.Kind, r.World, r.Iters, r.Lanes})
		require.NotNil(t, r.Wrong)
		assert.Zero(t, *r.Wrong)
		assert.Positive(t, r.MinUs)
		assert.LessOrEqual(t, r.MinUs, r.P50Us)
		assert.LessOrEqual(t, r.P50Us, r.MaxUs)
		assert.Positive(t, r.BusBW)
	}
	samples, err := os.ReadFile(raw)
	require.NoError(t, err)
	assert.Equal(t, 1+4*20, bytes.Count(samples, []byte("\n")))
}

func TestLanesAreMeasuredOnceFromTheCommand(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // where darwin looks
	for _, want := range []string{"times=\"[", "times=remembered"} {
		code, out, stderr := runs(t, "perf", "-n", "2", "-v", "--lanes", "auto", "--window", "64K", "--sockbuf", "64K", "--op", "exchange", "--sizes", "1M", "--iters", "5")
		require.Equal(t, exitOK, code, "%s%s", out, stderr)
		assert.Contains(t, stderr, "lanes were measured")
		assert.Contains(t, stderr, want)
	}
}

func TestJSONOnStandardOutputIsAlone(t *testing.T) {
	code, out, stderr := runs(t, "perf", "-n", "2", "--op", "barrier", "--iters", "5", "--json", "-")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	for line := range strings.Lines(out) {
		assert.True(t, json.Valid([]byte(line)), line)
	}
	assert.Contains(t, stderr, "barrier, 2 ranks")
}

func TestTheSuitePasses(t *testing.T) {
	code, out, stderr := runs(t, "perf", "-n", "2", "--suite", "--seed", "1")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.Equal(t, 1, strings.Count(out, "PASS"))
	assert.True(t, strings.HasSuffix(out, "\nPASS\n"), out)
	assert.Contains(t, out, "all-gather-v")
}

func TestAKillLeavesReceipts(t *testing.T) {
	code, out, stderr := runs(t, "perf", "-n", "3", "--kill-after", "200ms", "--sizes", "64")
	assert.Equal(t, exitFailed, code, "%s%s", out, stderr)
	for _, r := range []int{0, 1} {
		assert.Contains(t, out, fmt.Sprintf("receipt: rank %d lost rank 2 after ", r))
	}
	assert.Equal(t, 2, strings.Count(out, "over tcp: peer failed"), out)
}

func TestPerfListenPrintsTheCommandForTheOtherHost(t *testing.T) {
	port := freePort(t)
	key := filepath.Join(t.TempDir(), "the key")
	code, _, stderr := runs(t, "keygen", key)
	require.Equal(t, exitOK, code, stderr)
	first := begin(t, "perf", "--listen=127.0.0.1:"+port, "--secret-file", key, "--verify", "--eager", "1000", "--op", "barrier", "--iters", "5")
	first.stderr.await(t, "waiting at 127.0.0.1:"+port)
	_, line, found := strings.Cut(first.stderr.String(), "  hipfabric ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	assert.Equal(t, fmt.Sprintf("perf --rank 1 --world 2 --master 127.0.0.1:%s --secret-file '%s' --eager=1000 --verify=true", port, key), line)
	second := exec.Command("/bin/sh", "-c", os.Args[0]+" "+line)
	second.Env = append(os.Environ(), asProgram+"=1")
	out, err := second.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, exitOK, first.code(), first.stderr)
	assert.Contains(t, first.stdout.String(), "barrier, 2 ranks")
}

func TestAnotherSecretIsUnauthorized(t *testing.T) {
	port := freePort(t)
	dir := t.TempDir()
	for _, key := range []string{"a", "b"} {
		code, _, stderr := runs(t, "keygen", filepath.Join(dir, key))
		require.Equal(t, exitOK, code, stderr)
	}
	first := begin(t, "perf", "--listen=127.0.0.1:"+port, "--secret-file", filepath.Join(dir, "a"))
	first.stderr.await(t, "waiting at")
	code, _, stderr := runs(t, "perf", "--rank", "1", "--world", "2", "--master", "127.0.0.1:"+port, "--secret-file", filepath.Join(dir, "b"))
	assert.Equal(t, exitEnvironment, code, stderr)
	assert.Contains(t, stderr, "unauthorized")
}

func TestDifferentSettingsAreAMismatch(t *testing.T) {
	port := freePort(t)
	first := begin(t, "perf", "--listen=127.0.0.1:"+port, "--verify")
	first.stderr.await(t, "waiting at")
	code, _, stderr := runs(t, "perf", "--rank", "1", "--world", "2", "--master", "127.0.0.1:"+port)
	assert.Equal(t, exitDesync, code, stderr)
	assert.Contains(t, stderr, "Verify")
	assert.Equal(t, exitDesync, first.code(), first.stderr)
}

func TestStatusFindsAGroupThatRuns(t *testing.T) {
	tmp, err := os.MkdirTemp("", "hfs") // short, since a socket's path is
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	t.Setenv("TMPDIR", tmp)
	code, _, stderr := runs(t, "status")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "no running group")
	p := begin(t, "perf", "-n", "2", "--op", "exchange", "--sizes", "16", "--iters", "10000000")
	require.Eventually(t, func() bool { return len(findSockets(tmp)) == 1 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		code, out, _ := runs(t, "status", "--json")
		var s hipfabric.Status
		return code == exitOK && json.Unmarshal([]byte(out), &s) == nil && len(s.Ranks) == 2 && s.Ranks[0].Op == "exchange" && s.Ranks[1].Host != ""
	}, patience, 50*time.Millisecond)
	code, out, stderr := runs(t, "status")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"group default, told by rank 0 of 2", "path tcp", "calls/s", "exchange", "waits for", "received/s"} {
		assert.Contains(t, out, want)
	}
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, exitFailed, p.code(), p.stderr)
	assert.Contains(t, p.stderr.String(), "interrupted")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestRunGivesTheCodeOfItsRank(t *testing.T) {
	code, out, stderr := runs(t, "run", "-n", "2", "--", "/bin/sh", "-c", `echo "I am $HIPFABRIC_RANK"; [ $HIPFABRIC_RANK = 0 ] || exit 9; sleep 100`)
	assert.Equal(t, 9, code)
	assert.Contains(t, out, "[1] I am 1\n")
	assert.Contains(t, stderr, "hipfabric: rank 1 ended with code 9; ending the others\n")
}

func TestRanksDoNotOutliveAKilledRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	t.Setenv("TMPDIR", t.TempDir())
	p := begin(t, "run", "-n", "1", "--", "/bin/sh", "-c", "echo I am $$.; exec sleep 1000")
	p.stdout.await(t, ".\n")
	var pid int
	_, err := fmt.Sscanf(p.stdout.String(), "[0] I am %d.", &pid)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Kill())
	p.code()
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, patience, 5*time.Millisecond, "the rank lives on")
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, _, stderr := runs(t, "perf", "--listen="+l.Addr().String())
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, l.Addr().String())
	assert.Contains(t, stderr, "is taken by another program")
}

func TestRanksOfOtherHostsMeet(t *testing.T) {
	ssh := sshtest.Start(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	code, out, stderr := runs(t, "run", "--hosts", "127.0.0.1,localhost:2", "--port", freePort(t), "--ssh", ssh, "--env", "TMPDIR,"+asProgram, "--",
		os.Args[0], "perf", "--op", "all-reduce", "--sizes", "4K", "--iters", "5")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.Contains(t, out, "[0]  all-reduce, 3 ranks, tcp")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAMasterThatIsNotThereIsNamed(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	code, _, stderr := runs(t, "perf", "--rank", "1", "--world", "2", "--master", address, "--open-timeout", "500ms")
	assert.Equal(t, exitFailed, code, stderr)
	assert.Contains(t, stderr, address)
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestAFileThatCannotBeWrittenIsNamedByOneLine(t *testing.T) {
	code, _, stderr := runs(t, "perf", "--rank", "0", "--world", "2", "--master", "127.0.0.1:"+freePort(t), "--json", "/nowhere/at/all")
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, stderr, "/nowhere/at/all")
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestTooFewDescriptorsAreNamed(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 12; exec "$0" run -n 8 -- sleep 100`, os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, exitEnvironment, cmd.ProcessState.ExitCode())
	assert.Contains(t, string(out), "ulimit -n")
	assert.Equal(t, 1, strings.Count(string(out), "\n"), "%s", out)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}
