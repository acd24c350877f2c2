// Package rxevm_test holds the machine's scripts to what they promise. The tests that boot it have the tag rxevm: make test-rxe runs them.
package rxevm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// having runs run.sh where only the named programs are, which do nothing, and those that the scripts begin with.
func having(t *testing.T, args []string, programs ...string) (out string, code int) {
	if runtime.GOOS != "linux" {
		t.Skip("the scripts are for Linux")
	}
	bin := t.TempDir()
	for _, p := range []string{"bash", "dirname", "mktemp", "rm", "sed"} {
		at, err := exec.LookPath(p)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(at, filepath.Join(bin, p)))
	}
	for _, p := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(bin, p), []byte("#!/bin/sh\n"), 0o755))
	}
	cmd := exec.Command(filepath.Join(bin, "bash"), append([]string{"run.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + bin, "TMPDIR=" + t.TempDir()}
	text, err := cmd.CombinedOutput()
	require.Error(t, err)
	return string(text), cmd.ProcessState.ExitCode()
}

func TestAProgramThatIsMissingIsNamed(t *testing.T) {
	qemu := []string{"qemu-system-x86_64"}
	for missing, has := range map[string][]string{
		"qemu-system-x86_64": nil,
		"busybox":            qemu,
		"ibv_devinfo":        append(qemu, "busybox", "sh", "ip", "tc", "rdma", "ss"),
	} {
		out, code := having(t, []string{"true"}, has...)
		assert.Equal(t, 125, code)
		assert.Equal(t, "rxe-vm: "+missing+" is not installed; build/setup.sh test-rxe says how\n", out)
	}
}

func TestAWrongOptionIsRefusedByName(t *testing.T) {
	for want, args := range map[string][]string{
		"rxe-vm: -t 0: not a number of seconds above 0\n":                                   {"-t", "0", "true"},
		"rxe-vm: -t 2m: not a number of seconds above 0\n":                                  {"-t", "2m", "true"},
		"rxe-vm: -a hvf: not an accelerator; kvm or tcg\n":                                  {"-a", "hvf", "true"},
		"rxe-vm: a shell needs a terminal; give a command (make shell-rxe COMMAND='...')\n": nil,
	} {
		out, code := having(t, args)
		assert.Equal(t, 125, code)
		assert.Equal(t, want, out)
	}
	out, _ := having(t, []string{"-z"})
	assert.Contains(t, out, "usage: build/rxe-vm/run.sh [-t SECONDS]")
}
