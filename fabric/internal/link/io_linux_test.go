package link

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestAnInterruptedSystemCallIsMadeAgain(t *testing.T) {
	for _, last := range []syscall.Errno{0, unix.EAGAIN, unix.ECONNRESET} {
		calls := 0
		n, errno := uninterrupted(func(_ *Conn, most int) (int, syscall.Errno) {
			if calls++; calls < 3 {
				return -1, unix.EINTR
			}
			return most, last
		}, nil, 7)
		assert.Equal(t, 3, calls)
		assert.Equal(t, 7, n)
		assert.Equal(t, last, errno)
	}
}
