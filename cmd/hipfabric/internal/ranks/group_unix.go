//go:build unix

package ranks

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Forwarded lists the signals that belong in Options.Signals: those that ask a program for something.
func Forwarded() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE}
}

// supported says whether processes can be started as a group here.
func supported() error { return nil }

// signalGroup signals the process group of pid and says whether anybody was there. A stopped process is woken to end.
func signalGroup(pid int, sig syscall.Signal) bool {
	err := unix.Kill(-pid, sig)
	if sig == syscall.SIGTERM {
		_ = unix.Kill(-pid, unix.SIGCONT)
	}
	return err == nil
}

// signalName is what the kill command calls a signal.
func signalName(sig syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(sig), "SIG") }
