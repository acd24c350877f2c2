package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what is written to it is heard.
func terminal(t *testing.T) (tty *os.File, heard *watched) {
	t.Helper()
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = host.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	heard = &watched{}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := host.Read(buf)
			if err != nil {
				return
			}
			_, _ = heard.Write(buf[:n])
		}
	}()
	return tty, heard
}

func TestATerminalSeesHowFarTheDemoIs(t *testing.T) {
	tty, heard := terminal(t)
	cmd := exec.Command(os.Args[0], "demo")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = tty
	out, err := cmd.Output()
	require.NoError(t, err)
	heard.await(t, "checking")
	heard.await(t, " calls in ")
	assert.NotContains(t, string(out), "\x1b", "what a script reads is plain")
}
