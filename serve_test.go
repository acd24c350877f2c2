package hipfabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestServeOpensAgainAfterAFailure(t *testing.T) {
	all := configs(t, 2, nil)
	var lives [2]atomic.Int32
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	errs := each(2, func(r int) error {
		return Serve(ctx, all[r], func(inside context.Context, g *Group) error {
			life := lives[r].Add(1)
			if life == 1 && r == 1 {
				g.Abort(errors.New("first life"))
			}
			if err := g.Host().Barrier(); err != nil {
				<-inside.Done()
				assert.ErrorIs(t, context.Cause(inside), fabric.ErrAborted, "the context ends with the group's cause")
				return err
			}
			return g.Control().Barrier(inside)
		})
	})
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
		assert.Equal(t, int32(2), lives[r].Load())
	}
}

func TestServeEndsWhereAnotherTryCannotHelp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	never := func(context.Context, *Group) error { t.Error("fn ran"); return nil }
	assert.ErrorIs(t, Serve(ctx, Config{World: 99}, never), fabric.ErrInvalid)
	all := configs(t, 2, func(c *Config) { c.Verify = c.Rank == 1 })
	for r, err := range each(2, func(r int) error { return Serve(ctx, all[r], never) }) {
		assert.ErrorIs(t, err, fabric.ErrMismatch, "rank %d", r)
	}
}

func TestServeGivesBackAnErrorThatIsNotTheGroups(t *testing.T) {
	own := errors.New("model file is missing")
	all := configs(t, 2, func(c *Config) { c.OpenTimeout = time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan error, 16)
	errs := each(2, func(r int) error {
		return Serve(ctx, all[r], func(_ context.Context, g *Group) error {
			if r == 1 {
				return own
			}
			err := g.Host().Barrier()
			seen <- err
			cancel() // rank 1 does not come back
			return err
		})
	})
	require.ErrorIs(t, errs[1], own)
	require.ErrorIs(t, errs[0], context.Canceled)
	err := <-seen
	require.ErrorIs(t, err, fabric.ErrAborted)
	assert.ErrorContains(t, err, "model file is missing")
}

func TestServeEndsWithItsContextEvenInsideACall(t *testing.T) {
	all := configs(t, 2, func(c *Config) { c.Timeout = NoTimeout })
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	inCall := make(chan struct{})
	errs := each(2, func(r int) error {
		return Serve(ctx, all[r], func(inside context.Context, g *Group) error {
			if r == 0 {
				defer close(inCall)
				return g.Host().Barrier() // rank 1 never comes
			}
			cancel(stopped)
			<-inside.Done()
			select {
			case <-inCall:
			case <-time.After(30 * time.Second):
				t.Error("the call did not end")
			}
			return inside.Err()
		})
	})
	for r, err := range errs {
		assert.ErrorIs(t, err, stopped, "rank %d", r)
	}
}

// lines is a concurrent log sink.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) with(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestAGroupLogsItsOpeningItsCauseOneTableAndItsClose(t *testing.T) {
	var logs [3]lines
	groups := opened(t, 3, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs[c.Rank], nil)) })
	require.NoError(t, errors.Join(each(3, func(r int) error { return groups[r].Host().Barrier() })...))
	errs := each(3, func(r int) error {
		if r == 2 {
			return groups[r].Host().AllReduce(make([]byte, 4), make([]byte, 4), fabric.I32, fabric.Sum)
		}
		return groups[r].Host().AllGather(make([]byte, 12), make([]byte, 4))
	})
	for r, err := range errs {
		require.ErrorIs(t, err, fabric.ErrDesync, "rank %d", r)
	}
	assert.Eventually(t, func() bool { return logs[0].with("flight records") == 1 }, 10*time.Second, time.Millisecond)
	closeAll(groups)
	for r := range logs {
		assert.Equal(t, 1, logs[r].with(`level=INFO msg="group open"`), "rank %d", r)
		assert.Equal(t, 1, logs[r].with(`level=ERROR msg="group failed"`), "rank %d", r)
		assert.Equal(t, 1, logs[r].with(`level=INFO msg="group closed"`), "rank %d", r)
	}
	assert.Equal(t, 1, logs[0].with("flight records"))
	assert.Equal(t, 1, logs[0].with(`disagree="seq 2: ranks 0, 1: all-gather of 4 bytes; ranks 2: all-reduce of 4 bytes, sum of i32"`), logs[0].buf.String())
	assert.Zero(t, logs[1].with("flight records"))
}

func TestATakenPortIsNoReasonToGiveUp(t *testing.T) {
	taken := fmt.Errorf("%w (%w)", fabric.Invalidf("port 1 is taken"), syscall.EADDRINUSE)
	assert.False(t, final(taken))
	assert.True(t, final(fabric.Invalidf("another setting")))
}

func TestEveryOffIsTheSameOff(t *testing.T) {
	groups := opened(t, 2, func(c *Config) { c.Heartbeat = time.Duration(-1 - c.Rank) })
	closeAll(groups)
}
