package rail

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLoopbackIsListed(t *testing.T) {
	all, err := List()
	require.NoError(t, err)
	for _, f := range all {
		if f.Name == "lo" {
			assert.True(t, f.Loopback)
			assert.Contains(t, f.Addresses, prefixes("127.0.0.1/8")[0])
			return
		}
	}
	t.Skip("this system has no lo")
}

func TestBridgesAndTheirMembersAreKnown(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("a network namespace is filled with ip: apt install iproute2")
	}
	done := make(chan string, 1)
	var all []Interface
	var looks [4]string
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, and the namespace with it, end with the goroutine
		done <- func() string {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err.Error()
			}
			for _, command := range []string{"link add any type bridge", "link set any up", "addr add 10.1.0.1/16 dev any", "link add in type veth peer name out",
				"link set in master any", "link set in up", "link set out up", "addr add 10.2.0.1/24 dev out", "link add off type veth peer name lost", "link set off up"} {
				if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
					return "ip " + command + ": " + string(out)
				}
			}
			var err error
			if all, err = List(); err != nil {
				return err.Error()
			}
			looks = [4]string{Look("out"), Look("lost"), Look("off"), Look("none")}
			return ""
		}()
	}()
	if problem := <-done; problem != "" {
		t.Skip("no network namespace with a bridge can be made here: " + problem)
	}
	byName := map[string]Interface{}
	for _, f := range all {
		byName[f.Name] = f
	}
	assert.True(t, byName["any"].Bridge)
	assert.Equal(t, prefixes("10.1.0.1/16")[0], byName["any"].Addresses[0])
	assert.True(t, byName["in"].Enslaved)
	assert.False(t, byName["in"].Bridge)
	assert.False(t, byName["out"].Enslaved || byName["out"].Bridge)
	assert.Equal(t, "out 10.2.0.1", func() string {
		chosen := Choose(all, &Selectors{})
		require.Len(t, chosen, 1)
		return chosen[0].Interface + " " + chosen[0].Addr.String()
	}())
	assert.Empty(t, looks[0])
	assert.Contains(t, looks[1], "lost is switched off")
	assert.Contains(t, looks[2], "off has no link")
	assert.Contains(t, looks[3], "none is not there")
}
