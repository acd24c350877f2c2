//go:build linux && cgo

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/gpu"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
)

// demoOn is what the demo's last line says of device memory on a machine without a GPU, up to what went over RoCE.
func demoOn(string) string {
	return "device memory staged over tcp on the software device, gates words and kernels, 20 replays of a captured graph; host memory and software devices', small calls by the mailbox,"
}

// results are the measurements of a JSON file, after the environment.
func results(t *testing.T, path string) (env map[string]any, list []measure.Result) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var r measure.Result
		switch text := lines.Text(); {
		case strings.Contains(text, "environment/1"):
			require.NoError(t, json.Unmarshal([]byte(text), &env))
		case strings.Contains(text, measure.Schema):
			require.NoError(t, json.Unmarshal([]byte(text), &r))
			list = append(list, r)
		}
	}
	return env, list
}

func TestPerfStagedRunsWithBothGatesOnTheSoftwareDevice(t *testing.T) {
	for _, gate := range []string{"words", "kernels"} {
		t.Run(gate, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out.json")
			code, out, stderr := runs(t, "perf", "-n", "2", "--kind", "staged", "--device", "software", "--gate", gate, "--part", "16K", "--op", "all",
				"--sizes", "16,20K", "--iters", "10", "--warmup", "2", "--json", file)
			require.Equal(t, exitOK, code, "%s%s", out, stderr)
			for _, want := range []string{"queued_p50_us", "device: the software device (asked for)", gate + " gate on gfx1151", "all-reduce, 2 ranks, staged (" + gate + " gate, software device)"} {
				assert.Contains(t, out, want)
			}
			assert.NotContains(t, out, "shared", "a software device is a process's own")
			env, list := results(t, file)
			assert.Equal(t, gate, env["gate"])
			require.Len(t, list, 2*len(opNames())-1)
			for _, r := range list {
				assert.Equal(t, "staged", r.Kind)
				require.NotNil(t, r.Wrong)
				assert.Zero(t, *r.Wrong)
				require.NotNil(t, r.QueuedP50Us)
				assert.Less(t, *r.QueuedP50Us, r.MaxUs)
			}
		})
	}
}

func TestPerfStagedKeepsTheSuiteAndTheKill(t *testing.T) {
	code, out, stderr := runs(t, "perf", "-n", "2", "--kind", "staged", "--device", "software", "--suite", "--seed", "1")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.True(t, strings.HasSuffix(out, "\nPASS\n"), out)
	code, out, stderr = runs(t, "perf", "-n", "3", "--kind", "staged", "--device", "software", "--kill-after", "200ms", "--sizes", "64")
	assert.Equal(t, exitFailed, code, "%s%s", out, stderr)
	assert.Equal(t, 2, strings.Count(out, "over staged in group \"default/device\": peer failed"), out)
}

func TestAnAutomaticDeviceIsTheSoftwareOneWhereThereIsNoGPU(t *testing.T) {
	code, out, stderr := runs(t, "perf", "-n", "2", "--kind", "staged", "--op", "barrier", "--iters", "5")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	if !strings.Contains(out, "device: the software device (") {
		t.Skip("there is a GPU")
	}
	assert.Contains(t, out, "words gate")
}

// statusOf asks the only group under dir until what it says has want.
func statusOf(t *testing.T, dir, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(findSockets(dir)) == 1 }, patience, 10*time.Millisecond)
	out := ""
	require.Eventually(t, func() bool {
		_, out, _ = runs(t, "status")
		return strings.Contains(out, want)
	}, patience, 50*time.Millisecond, "%s", out)
}

func TestStatusShowsStagedCalls(t *testing.T) {
	tmp, err := os.MkdirTemp("", "hfs") // short, since a socket's path is
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	t.Setenv("TMPDIR", tmp)
	p := begin(t, "perf", "-n", "2", "--kind", "staged", "--device", "software", "--op", "exchange", "--sizes", "16", "--iters", "10000000")
	statusOf(t, tmp, "exchange in default/device")
	statusOf(t, tmp, "device memory, words gate on gfx1151")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, exitFailed, p.code(), p.stderr)
	assert.Contains(t, p.stderr.String(), "interrupted")
}

// hip runs doctor hip and reads its document.
func hip(t *testing.T, args ...string) (code int, r gpu.Report, stderr string) {
	t.Helper()
	code, out, stderr := runs(t, append([]string{"doctor", "hip", "--json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &r), "%s%s", out, stderr)
	assert.Equal(t, gpu.Schema, r.Schema)
	return code, r, stderr
}

func TestDoctorHipSaysWhyThereIsNoGPU(t *testing.T) {
	code, r, stderr := hip(t, "--library", "/nowhere/libamdhip64.so.7")
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, r.None, "/nowhere/libamdhip64.so.7")
	assert.Contains(t, stderr, "/nowhere/libamdhip64.so.7")
	assert.Empty(t, r.GPUs)
}

func TestDoctorHipOnDebiansOwnLibrary(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/*/libamdhip64.so.5")
	if len(found) == 0 {
		t.Skip("needs Debian's libamdhip64-5")
	}
	code, r, stderr := hip(t, "--library", found[0])
	if len(r.GPUs) > 0 {
		t.Skip("there is a GPU")
	}
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, r.None, "no GPU")
	assert.Contains(t, r.None, found[0])
	assert.Equal(t, "5.2.21153", r.Version)
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestAReceiptHoldsAllAndItsSumsAgree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "receipt")
	code, out, stderr := runs(t, "perf", "-n", "2", "--kind", "staged", "--device", "software", "--op", "all-reduce", "--sizes", "4K", "--iters", "7", "--receipt", dir)
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, out, read(receiptTable))
	env, list := results(t, filepath.Join(dir, receiptJSON))
	assert.Equal(t, "words", env["gate"])
	assert.Len(t, list, 1)
	assert.Equal(t, 1+7, strings.Count(read(receiptRaw), "\n"))
	for _, want := range []string{`"rank":0`, `"rank":1`, `"kernel"`, `"device"`} {
		assert.Contains(t, read(receiptRanks), want)
	}
	assert.Contains(t, read(receiptLog), "group open")
	assert.Contains(t, read(receiptLog), "device open")
	assert.Contains(t, read(receiptHip), gpu.Schema)
	assert.Equal(t, "PASS\n", read(receiptVerdict))
	sums := exec.Command("sha256sum", "--check", "--strict", receiptSums)
	sums.Dir = dir
	told, err := sums.CombinedOutput()
	require.NoError(t, err, "%s", told)
	assert.Equal(t, 7, strings.Count(string(told), ": OK\n"), "%s", told)
	// Another run never mixes with it.
	code, _, stderr = runs(t, "perf", "-n", "1", "--op", "barrier", "--iters", "1", "--receipt", dir)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "is not empty")
}

func TestAReceiptOfAFailureIsFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "receipt")
	code, _, stderr := runs(t, "perf", "-n", "2", "--kill-after", "100ms", "--receipt", dir)
	require.Equal(t, exitFailed, code, stderr)
	b, err := os.ReadFile(filepath.Join(dir, receiptVerdict))
	require.NoError(t, err)
	assert.Contains(t, string(b), "FAIL: ")
	assert.Contains(t, string(b), "peer failed")
	assert.FileExists(t, filepath.Join(dir, receiptSums))
}
