//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// folder is where iproute2 keeps namespaces by name.
const folder = "/run/netns/"

// toolLimit bounds a command of iproute2.
const toolLimit = 20 * time.Second

var made atomic.Int64 // namespaces of this process, to name them

// Host is a network namespace: a host without a network until Cable or Switch gives it one.
type Host struct {
	Name  string
	Index int // among those that were made together, from 0

	t     testing.TB
	ports int
}

// Hosts makes n hosts, which end with the test. It skips the test where this machine cannot make any.
func Hosts(t testing.TB, n int) []*Host {
	t.Helper()
	requireTools(t)
	sweep()
	hosts := make([]*Host, n)
	for i := range hosts {
		hosts[i] = newHost(t, i)
	}
	return hosts
}

func requireTools(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed (Debian: iproute2)")
	}
}

func newHost(t testing.TB, index int) *Host {
	t.Helper()
	h := &Host{Name: fmt.Sprintf("hf-%d-%d", os.Getpid(), made.Add(1)), Index: index, t: t}
	if out, err := tool("ip", "netns", "add", h.Name); err != nil {
		t.Skipf("this system makes no network namespace: %v: %s", err, out)
	}
	t.Cleanup(func() { _, _ = tool("ip", "netns", "del", h.Name) })
	// An IPv6 address is of use at once, and survives a cable that is pulled.
	h.Run("sh", "-c", "cd /proc/sys/net/ipv6/conf && for c in all default; do echo 0 >$c/accept_dad; echo 1 >$c/keep_addr_on_down; done")
	h.ip("link", "set", "lo", "up")
	return h
}

// sweep removes what test processes that were killed have left.
func sweep() {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		var pid, k int
		if n, _ := fmt.Sscanf(e.Name(), "hf-%d-%d", &pid, &k); n == 2 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_, _ = tool("ip", "netns", "del", e.Name())
		}
	}
}

// Command is a command on this host; the process that it starts is the program itself, so that signals reach it.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.Name, name}, args...)...)
}

// Run runs a short command on this host and gives its output; one that fails ends the test.
func (h *Host) Run(name string, args ...string) string {
	h.t.Helper()
	out, err := tool("ip", append([]string{"netns", "exec", h.Name, name}, args...)...)
	if err != nil {
		h.t.Fatalf("%s: %s %s: %v: %s", h.Name, name, strings.Join(args, " "), err, out)
	}
	return out
}

// Inside runs fn on a thread of this host, where the sockets that fn opens, and those that they accept, belong. What other
// goroutines open does not.
func (h *Host) Inside(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		done <- func() error {
			f, err := os.Open(folder + h.Name)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter %s: %w", h.Name, err)
			}
			return fn()
		}()
	}()
	return <-done
}

// ip runs iproute2's ip on this host; a failure ends the test.
func (h *Host) ip(args ...string) string {
	h.t.Helper()
	out, err := tool("ip", append([]string{"-n", h.Name}, args...)...)
	if err != nil {
		h.t.Fatalf("%s: ip %s: %v: %s", h.Name, strings.Join(args, " "), err, out)
	}
	return out
}

// tool runs a command to its end.
func tool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
