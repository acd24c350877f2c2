package bootstrap

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hosts are network namespaces, each of which stands for a host, named a, b, c.
type hosts struct {
	t     *testing.T
	names map[string]string
}

// space tells the namespaces of tests and of processes that run at the same time apart.
var space atomic.Int32

func newHosts(t *testing.T, names ...string) *hosts {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need ip: apt install iproute2")
	}
	h := &hosts{t, map[string]string{}}
	for _, n := range names {
		full := fmt.Sprintf("hfr%d-%d%s", os.Getpid(), space.Add(1), n)
		if out, err := exec.Command("ip", "netns", "add", full).CombinedOutput(); err != nil {
			t.Skipf("no network namespace can be made here: %s", out)
		}
		h.names[n] = full
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", full).Run() })
		h.ip(n, "link set lo up")
	}
	return h
}

// ip runs an ip command in a host.
func (h *hosts) ip(host, command string) {
	h.t.Helper()
	out, err := exec.Command("ip", append([]string{"-n", h.names[host]}, strings.Fields(command)...)...).CombinedOutput()
	require.NoError(h.t, err, "ip -n %s %s: %s", host, command, out)
}

// cable joins an interface of one host and one of another.
func (h *hosts) cable(hostA, nameA, hostB, nameB string) {
	h.t.Helper()
	h.ip(hostA, fmt.Sprintf("link add %s type veth peer name %s netns %s", nameA, nameB, h.names[hostB]))
	h.ip(hostA, "link set "+nameA+" up")
	h.ip(hostB, "link set "+nameB+" up")
}

// loosen has a host take packets by any interface, as most systems do, whatever this one does.
func (h *hosts) loosen(host string) {
	h.on(host, func() {
		for _, scope := range []string{"all", "default"} {
			assert.NoError(h.t, os.WriteFile("/proc/sys/net/ipv4/conf/"+scope+"/rp_filter", []byte("0"), 0o600))
		}
	})
}

// on runs f on a thread that is in a host for good, so that all that it opens is there.
func (h *hosts) on(host string, f func()) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		fd, err := unix.Open("/var/run/netns/"+h.names[host], unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			_ = unix.Close(fd)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	assert.NoError(h.t, <-done)
}

// join has each rank join on its host, and leave at the test's end.
func (h *hosts) join(all []Config, where ...string) []*Session {
	h.t.Helper()
	sessions, errs := make([]*Session, len(all)), make([]error, len(all))
	ctx := testContext(h.t)
	each(len(all), func(r int) {
		all[r].background = func(f func()) { h.on(where[r], f) }
		h.on(where[r], func() { sessions[r], errs[r] = Join(ctx, all[r]) })
	})
	h.t.Cleanup(func() { closeAll(sessions) })
	for r := range errs {
		require.NoError(h.t, errs[r], "rank %d", r)
	}
	return sessions
}
