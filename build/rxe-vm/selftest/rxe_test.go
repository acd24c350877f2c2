//go:build rxevm

package selftest

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSoftRoCEComesUpAndCarries(t *testing.T) {
	run(t, "rxe-topology", "pair")
	for _, device := range []string{"rxe0", "rxe1"} {
		info := run(t, "ibv_devinfo", "-d", device)
		assert.Contains(t, info, "PORT_ACTIVE")
		assert.Regexp(t, `active_mtu:\s+4096`, info)
	}
	pingpong(t, "rxe0", "rxe1", "10.0.12.1")

	run(t, "rxe-link", "eth_a", "down")
	assert.Contains(t, run(t, "ibv_devinfo", "-d", "rxe0"), "PORT_DOWN")
	run(t, "rxe-link", "eth_a", "up")
	assert.Contains(t, run(t, "ibv_devinfo", "-d", "rxe0"), "PORT_ACTIVE")
	pingpong(t, "rxe0", "rxe1", "10.0.12.1")

	out, err := exec.Command("rxe-topology", "pair").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "there is one already")
}

// pingpong sends messages between two devices; the server, at address, compares what it gets.
func pingpong(t *testing.T, server, client, address string) {
	t.Helper()
	options := []string{"-g", "1", "-n", "200", "-c"}
	serving := exec.Command("timeout", append([]string{"60", "ibv_rc_pingpong", "-d", server}, options...)...)
	require.NoError(t, serving.Start())
	var said []byte
	met := assert.Eventually(t, func() (ok bool) {
		var err error
		said, err = exec.Command("timeout", append(append([]string{"60", "ibv_rc_pingpong", "-d", client}, options...), address)...).CombinedOutput()
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	assert.True(t, met, string(said))
	assert.NoError(t, serving.Wait())
}
