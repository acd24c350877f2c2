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

	perftest(t, "rxe0", "rxe1", "ib_write_lat", "-s", "16", "-n", "100")
	perftest(t, "rxe0", "rxe1", "ib_write_bw", "-b", "-s", "65536", "-n", "20")

	run(t, "rxe-link", "eth_a", "down")
	assert.Contains(t, run(t, "ibv_devinfo", "-d", "rxe0"), "PORT_DOWN")
	run(t, "rxe-link", "eth_a", "up")
	assert.Contains(t, run(t, "ibv_devinfo", "-d", "rxe0"), "PORT_ACTIVE")
	pingpong(t, "rxe0", "rxe1", "10.0.12.1")

	out, err := exec.Command("rxe-topology", "pair").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "there is one with ports named eth_")
}

// perftest has a program measure between two devices, which meet over lo.
func perftest(t *testing.T, server, client, program string, options ...string) {
	t.Helper()
	options = append([]string{"60", program, "-x", "1", "-F"}, options...)
	serving := exec.Command("timeout", append(options, "-d", server)...)
	require.NoError(t, serving.Start())
	var said []byte
	met := assert.Eventually(t, func() (ok bool) {
		var err error
		said, err = exec.Command("timeout", append(options, "-d", client, "127.0.0.1")...).CombinedOutput()
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	assert.True(t, met, string(said))
	assert.Regexp(t, `(?m)^ ?\d+ +\d+ +[\d.]+ +[\d.]+`, string(said), "a row of numbers")
	assert.NoError(t, serving.Wait())
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
