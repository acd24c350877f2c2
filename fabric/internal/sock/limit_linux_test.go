package sock

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLimitsAreSetAndWhatIsTooLargeIsNamed(t *testing.T) {
	d, _ := pair(t)
	require.NoError(t, Limit(d, Options{}))
	require.NoError(t, Limit(d, Options{Buffer: 64 << 10, Unsent: 32 << 10}))
	raw, err := d.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		for opt, want := range map[int]int{unix.SO_SNDBUF: 128 << 10, unix.SO_RCVBUF: 128 << 10} {
			got, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, opt)
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		}
		got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
		assert.NoError(t, err)
		assert.Equal(t, 32<<10, got)
	}))
	var clamped *ClampedError
	require.ErrorAs(t, Limit(d, Options{Buffer: 1 << 29}), &clamped)
	assert.Equal(t, []any{"SO_SNDBUF", 1 << 29}, []any{clamped.Option, clamped.Asked})
	assert.Less(t, clamped.Got, 1<<29)
}
