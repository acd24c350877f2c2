package sock

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The values stand here a second time, so that a line lost from the builder's table is missed.
func TestTheKernelHasEveryOption(t *testing.T) {
	for use, userTimeout := range map[Use]int{Control: 30_000, Data: 0} {
		d, a := pair(t)
		for end, c := range map[string]*net.TCPConn{"dialled": d, "accepted": a} {
			spoil(t, c)
			require.NoError(t, Tune(c, use))
			fd, err := Take(c)
			require.NoError(t, err)
			got := func(level, opt int) int {
				v, err := unix.GetsockoptInt(fd, level, opt)
				require.NoError(t, err)
				return v
			}
			assert.Equal(t, 1, got(unix.IPPROTO_TCP, unix.TCP_NODELAY), "TCP_NODELAY, %s", end)
			assert.Equal(t, 1, got(unix.SOL_SOCKET, unix.SO_KEEPALIVE), "SO_KEEPALIVE, %s", end)
			assert.Equal(t, 30, got(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), "TCP_KEEPIDLE, %s", end)
			assert.Equal(t, 10, got(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), "TCP_KEEPINTVL, %s", end)
			assert.Equal(t, 6, got(unix.IPPROTO_TCP, unix.TCP_KEEPCNT), "TCP_KEEPCNT, %s", end)
			assert.Equal(t, userTimeout, got(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT), "TCP_USER_TIMEOUT, %s, use %d", end, use)
			require.NoError(t, unix.Close(fd))
		}
	}
}

// spoil undoes what Go's net package sets by itself, which would hide that the builder does not.
func spoil(t *testing.T, c *net.TCPConn) {
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 0))
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0))
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 99))
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 98))
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 97))
		assert.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 9600))
	}))
}
