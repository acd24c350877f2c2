//go:build unix

package verbs

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// parked waits on a pipe until the byte that try takes out of it, and says when it has looked.
type parked struct {
	*parking
	fd     int
	writer *os.File
	looked chan struct{}
}

func newParked(t *testing.T) *parked {
	var fd [2]int
	require.NoError(t, unix.Pipe(fd[:]))
	require.NoError(t, unix.SetNonblock(fd[0], true))
	writer := os.NewFile(uintptr(fd[1]), "writer")
	p, err := park(fd[0], "reader")
	require.NoError(t, err)
	t.Cleanup(func() { p.close(); unix.Close(fd[0]); writer.Close() })
	return &parked{p, fd[0], writer, make(chan struct{}, 100)}
}

func (p *parked) start(ctx context.Context) chan error {
	ended := make(chan error, 1)
	go func() {
		ended <- p.wait(ctx, func() (bool, error) {
			n, err := unix.Read(p.fd, make([]byte, 1))
			p.looked <- struct{}{}
			if errors.Is(err, unix.EAGAIN) {
				return false, nil
			}
			return n == 1, err
		})
	}()
	return ended
}

func TestAWaitEndsByWhatItWaitsFor(t *testing.T) {
	p := newParked(t)
	for range 5 {
		ended := p.start(t.Context())
		<-p.looked
		_, err := p.writer.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, <-ended)
		<-p.looked
	}
}

func TestAWaitThatItsContextEndedLeavesTheNextOneAlone(t *testing.T) {
	p := newParked(t)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		ended := p.start(ctx)
		<-p.looked
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		cancel()
		require.ErrorIs(t, p.wait(ctx, func() (bool, error) { return false, nil }), context.DeadlineExceeded)

		ended = p.start(t.Context())
		<-p.looked
		waiting := p.start(ctx) // its turn never comes
		require.ErrorIs(t, <-waiting, context.DeadlineExceeded)
		_, err := p.writer.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, <-ended)
		<-p.looked
	}
}

func TestAWaitEndsByCloseAndByAFailure(t *testing.T) {
	p := newParked(t)
	broken := errors.New("broken")
	require.ErrorIs(t, p.wait(t.Context(), func() (bool, error) { return false, broken }), broken)
	ended := p.start(t.Context())
	<-p.looked
	p.close()
	require.Error(t, <-ended)
}

func TestATableWithoutDescriptorsIsPolled(t *testing.T) {
	p, err := park(-1, "none")
	require.NoError(t, err)
	require.NoError(t, p.wait(t.Context(), func() (bool, error) { return true, nil }))
	var unsupported *UnsupportedError
	require.ErrorAs(t, p.wait(t.Context(), func() (bool, error) { return false, nil }), &unsupported)
	assert.Contains(t, unsupported.Need, "poll")
	p.close()
	_, err = park(1<<20, "none")
	require.Error(t, err)
}
