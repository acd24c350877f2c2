//go:build rxevm

package rxevm_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guest runs run.sh with args to its end.
func guest(t *testing.T, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd := exec.Command("./run.sh", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestACommandsOutputAndStatusComeBack(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	said := `it's "two  words" $HOME \n *`
	stdout, stderr, code := guest(t, "--", "sh", "-c", `printf '%s\n' "$1"; pwd; cat run_test.go; echo wrong >&2; exit 77`, "sh", said)
	assert.Equal(t, 77, code, stderr)
	source, err := os.ReadFile("run_test.go")
	require.NoError(t, err)
	assert.Equal(t, said+"\n"+here+"\n"+string(source), stdout)
	assert.Regexp(t, `(?m)^rxe-vm: booted in [0-9.]+ s \((kvm|tcg)\)$`, stderr)
	assert.True(t, strings.HasSuffix(stderr, "\nwrong\n"), stderr)
}

func TestALimitEndsTheGuest(t *testing.T) {
	began := time.Now()
	stdout, stderr, code := guest(t, "-t", "2", "sh", "-c", "echo before; sleep 1000")
	assert.Equal(t, 124, code)
	assert.Equal(t, "before\n", stdout)
	assert.Contains(t, stderr, "rxe-vm: ended after 2 s, the limit")
	assert.Less(t, time.Since(began), 500*time.Second)
}

func TestAGuestThatDiesIsNoSuccess(t *testing.T) {
	for name, command := range map[string]string{"it powers off": "reboot -f", "its kernel panics": "echo c >/proc/sysrq-trigger"} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := guest(t, "sh", "-c", command+"; sleep 1000")
			assert.Equal(t, 125, code)
			assert.Contains(t, stderr, "rxe-vm: the guest died before the command ended")
		})
	}
}

// emulator is the process id of the QEMU that a run.sh has started.
func emulator(t *testing.T, script int) int {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", script, script))
	require.NoError(t, err)
	for _, pid := range strings.Fields(string(children)) {
		if name, _ := os.ReadFile("/proc/" + pid + "/comm"); strings.HasPrefix(string(name), "qemu") {
			id, err := strconv.Atoi(pid)
			require.NoError(t, err)
			return id
		}
	}
	require.Fail(t, "run.sh has no QEMU")
	return 0
}

func TestNothingIsLeftOfARunThatIsKilled(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGKILL: -1} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := exec.Command("./run.sh", "sleep", "1000")
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // a kill leaves its folder
			stderr, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			booted := false
			for lines := bufio.NewScanner(stderr); !booted && lines.Scan(); {
				booted = strings.Contains(lines.Text(), "booted")
			}
			require.True(t, booted)
			qemu := emulator(t, cmd.Process.Pid)
			require.NoError(t, cmd.Process.Signal(signal))
			_ = cmd.Wait()
			assert.Equal(t, want, cmd.ProcessState.ExitCode())
			gone := func() bool { return errors.Is(syscall.Kill(qemu, 0), syscall.ESRCH) }
			if signal == syscall.SIGKILL {
				assert.Eventually(t, gone, 30*time.Second, 10*time.Millisecond)
			} else {
				assert.True(t, gone(), "the script ended before its guest")
			}
		})
	}
}

func TestAShellHasATerminal(t *testing.T) {
	cmd := exec.Command("script", "-q", "-e", "-c", "./run.sh", "/dev/null")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	screen, typed := "", false
	for buf := make([]byte, 4096); ; {
		n, err := stdout.Read(buf)
		if screen += string(buf[:n]); err != nil {
			break
		}
		if !typed && strings.Contains(screen, "# ") {
			typed = true
			_, err := stdin.Write([]byte("tty; echo $((6 * 7)).; exit 9\n"))
			require.NoError(t, err)
		}
	}
	_ = cmd.Wait()
	assert.Equal(t, 9, cmd.ProcessState.ExitCode(), screen)
	assert.Contains(t, screen, "/dev/ttyS1\r\n42.\r\n")
}
