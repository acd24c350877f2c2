//go:build rxevm

// Package selftest proves, in the guest, that it is what the tests in it take for granted.
package selftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run runs a command that succeeds and gives its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
	return string(out)
}

func TestTheGuestIsOneAndSaysSo(t *testing.T) {
	assert.Equal(t, "1", os.Getenv("HIPFABRIC_TEST_VM"))
	name, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, "rxe-vm", name)
	assert.Zero(t, os.Geteuid())
	uptime, err := os.ReadFile("/proc/uptime")
	require.NoError(t, err)
	t.Logf("RESULT: the tests began %s s after the guest's kernel", strings.Fields(string(uptime))[0])
}

func TestTheBuiltHipfabricRuns(t *testing.T) {
	assert.Contains(t, run(t, os.Getenv("HIPFABRIC_BIN"), "version"), "hipfabric")
}

func TestItHasWhatTestsUse(t *testing.T) {
	for _, p := range []string{"sh", "bash", "ip", "tc", "ss", "rdma", "ping", "awk", "ibv_devinfo", "ibv_rc_pingpong"} {
		_, err := exec.LookPath(p)
		assert.NoError(t, err)
	}
	assert.Contains(t, run(t, "ip", "-V"), "iproute2")
	for _, folder := range []string{"/tmp", "/dev/shm", "/run"} {
		at := filepath.Join(folder, "written")
		assert.NoError(t, os.WriteFile(at, []byte("x"), 0o600))
		assert.NoError(t, os.Remove(at))
	}
	run(t, "ping", "-c", "1", "127.0.0.1")
	run(t, "ping", "-c", "1", "::1")
	run(t, "ip", "netns", "add", "made")
	assert.Contains(t, run(t, "ip", "netns", "list"), "made")
	run(t, "ip", "netns", "del", "made")
}
