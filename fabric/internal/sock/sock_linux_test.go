package sock

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (dialled, accepted *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	d, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	a, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { d.Close(); a.Close() })
	return d.(*net.TCPConn), a.(*net.TCPConn)
}

func TestBothEndsGetTheSameOptions(t *testing.T) {
	for _, use := range []Use{Control, Data} {
		d, a := pair(t)
		for _, c := range []*net.TCPConn{d, a} {
			require.NoError(t, Tune(c, use))
			fd, err := Take(c)
			require.NoError(t, err)
			assert.NoError(t, Check(fd, use))
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			require.NoError(t, err)
			assert.NotZero(t, flags&unix.O_NONBLOCK, "a taken socket never blocks")
			require.NoError(t, unix.Close(fd))
		}
	}
}

func TestOnlyControlConnectionsEndWhenUnacknowledged(t *testing.T) {
	d, _ := pair(t)
	require.NoError(t, Tune(d, Data))
	fd, err := Take(d)
	require.NoError(t, err)
	defer unix.Close(fd)
	got, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	require.NoError(t, err)
	assert.Zero(t, got)
	assert.ErrorContains(t, Check(fd, Control), "TCP_USER_TIMEOUT", "a data socket is no control socket")
}
