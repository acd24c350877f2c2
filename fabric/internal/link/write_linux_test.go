package link

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A socket that keeps the bounds of each write shows how many there were.
func TestHeaderAndPayloadGoInOneWrite(t *testing.T) {
	for _, n := range []int{0, 1, inline, inline + 1, 32 << 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
			require.NoError(t, err)
			defer unix.Close(fds[1])
			g, err := New(Options{})
			require.NoError(t, err)
			defer g.Close()
			c, err := g.Add(fds[0])
			require.NoError(t, err)

			payload := pattern(n, 1)
			copy(c.SendHeader()[:], "header")
			c.Send(payload)
			wrote, err := c.Flush(n)
			require.NoError(t, err)
			assert.Equal(t, HeaderSize+n, wrote)
			assert.False(t, c.Sending())

			message := make([]byte, HeaderSize+n+1)
			got, err := unix.Read(fds[1], message)
			require.NoError(t, err)
			require.Equal(t, HeaderSize+n, got, "the first write carries the whole frame")
			assert.Equal(t, "header", string(message[:6]))
			assert.Equal(t, payload, message[HeaderSize:got])
			_, err = unix.Read(fds[1], message)
			assert.ErrorIs(t, err, unix.EAGAIN, "and is the only one")
		})
	}
}
