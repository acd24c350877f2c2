package fabrictest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An engine's code takes either.
var _ fabrictest.Control = (*bootstrap.Control)(nil)

func TestGroupsGatherInMemory(t *testing.T) {
	fabrictest.Each(t, fabrictest.Groups(t, 4), func(g *fabrictest.Group) error {
		out := make([]byte, 4)
		if err := g.Host.AllGather(out, []byte{byte(g.Rank())}); err != nil {
			return err
		}
		if !bytes.Equal(out, []byte{0, 1, 2, 3}) {
			return fmt.Errorf("gathered %v", out)
		}
		return nil
	})
}

// waits blocks until rank waits in a call for others.
func waits(g *fabrictest.Group) {
	for g.Host.Progress().Waiting == 0 {
		select {
		case <-g.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestKillEndsEveryOtherRankWithOneCause(t *testing.T) {
	for victim := range 3 {
		groups := fabrictest.Groups(t, 3, fabrictest.Options{Name: "kill", Timeout: fabric.NoTimeout})
		texts := make([]string, 3)
		fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
			if g.Rank() == victim {
				for _, other := range groups {
					if other != g {
						waits(other)
					}
				}
				g.Kill()
				g.Kill()
				if err := g.Host.Barrier(); !errors.Is(err, fabric.ErrPeerFailed) {
					return fmt.Errorf("the victim's own call gave %w", err)
				}
				return nil
			}
			err := g.Host.Barrier()
			var op *fabric.OpError
			if !errors.Is(err, fabric.ErrPeerFailed) || !errors.As(err, &op) || op.Peer != victim {
				return fmt.Errorf("gave %w", err)
			}
			texts[g.Rank()] = op.Err.Error()
			if _, _, err := g.Control.Recv(t.Context(), nil); !errors.Is(err, fabric.ErrPeerFailed) {
				return fmt.Errorf("control gave %w", err)
			}
			<-g.Done()
			if err := g.Err(); !errors.Is(err, fabric.ErrPeerFailed) {
				return fmt.Errorf("Err is %w", err)
			}
			return nil
		})
		texts = append(texts[:victim], texts[victim+1:]...)
		assert.Equal(t, texts[0], texts[1])
	}
}

func TestAPartitionEndsAtTheTimeoutAndNamesThePeer(t *testing.T) {
	groups := fabrictest.Groups(t, 3, fabrictest.Options{Timeout: 200 * time.Millisecond})
	groups[2].Partition(0, 1)
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
		if g.Rank() == 2 {
			<-g.Done()
			return nil
		}
		err := g.Host.Barrier()
		var op *fabric.OpError
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || op.Peer != 2 {
			return fmt.Errorf("gave %w", err)
		}
		return nil
	})
}

func TestAHealedPartitionLosesNothing(t *testing.T) {
	groups := fabrictest.Groups(t, 2, fabrictest.Options{Timeout: fabric.NoTimeout})
	groups[0].Partition(1)
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
		if g.Rank() == 1 {
			waits(groups[0])
			g.Heal(0)
		}
		in, out := bytes.Repeat([]byte{byte(g.Rank())}, 1<<20), make([]byte, 1<<20)
		if err := g.Host.Exchange(out, in, 1-g.Rank()); err != nil {
			return err
		}
		if !bytes.Equal(out, bytes.Repeat([]byte{byte(1 - g.Rank())}, 1<<20)) {
			return errors.New("wrong bytes")
		}
		return nil
	})
}

func TestControlKeepsOrderAndLimits(t *testing.T) {
	const messages = 1000 // more than an inbox holds
	fabrictest.Each(t, fabrictest.Groups(t, 3), func(g *fabrictest.Group) error {
		ctx := t.Context()
		if g.Rank() == 0 {
			var next [3]byte
			for range 2 * messages {
				var b [1]byte
				n, from, err := g.Control.Recv(ctx, b[:])
				if err != nil || n != 1 || b[0] != next[from] {
					return fmt.Errorf("got %d bytes %v from %d after %v: %w", n, b, from, next, err)
				}
				next[from]++
			}
		} else {
			for i := range messages {
				if err := g.Control.Send(ctx, 0, []byte{byte(i)}); err != nil {
					return err
				}
			}
		}
		if err := g.Control.Barrier(ctx); err != nil {
			return err
		}
		if g.Rank() == 0 {
			return errors.Join(g.Control.Broadcast(ctx, []byte("too long")), g.Control.Broadcast(ctx, nil), g.Control.Broadcast(ctx, []byte("plan")))
		}
		buf := make([]byte, 4)
		n, from, err := g.Control.Recv(ctx, buf)
		if !errors.Is(err, fabric.ErrInvalid) || n != 0 || from != 0 {
			return fmt.Errorf("too long a message gave %d, %d, %w", n, from, err)
		}
		if n, _, err = g.Control.Recv(ctx, buf); err != nil || n != 0 {
			return fmt.Errorf("an empty message gave %d, %w", n, err)
		}
		if n, _, err = g.Control.Recv(ctx, buf); err != nil || string(buf[:n]) != "plan" {
			return fmt.Errorf("got %q, %w", buf[:n], err)
		}
		return nil
	})
}

func TestControlEndsByContextByFailureAndByClose(t *testing.T) {
	groups := fabrictest.Groups(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := groups[0].Control.Recv(ctx, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, groups[0].Control.Barrier(ctx), context.Canceled)
	assert.ErrorIs(t, groups[0].Control.Send(ctx, 1, nil), context.Canceled)
	assert.ErrorIs(t, groups[0].Control.Send(t.Context(), 0, nil), fabric.ErrInvalid)
	assert.ErrorIs(t, groups[0].Control.Send(t.Context(), 2, nil), fabric.ErrInvalid)
	assert.ErrorIs(t, groups[0].Control.Send(t.Context(), 1, make([]byte, 256<<10+1)), fabric.ErrInvalid)
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error { return g.Control.Barrier(t.Context()) })

	// A barrier that a context ended stays entered: rank 1 passes, rank 0 resumes.
	brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, groups[0].Control.Barrier(brief), context.DeadlineExceeded)
	require.NoError(t, groups[1].Control.Barrier(t.Context()))
	require.NoError(t, groups[0].Control.Barrier(t.Context()))
	groups[1].Abort(errors.New("enough"))
	assert.ErrorIs(t, groups[0].Control.Barrier(t.Context()), fabric.ErrAborted)
	assert.ErrorContains(t, groups[0].Err(), "enough")

	closed := fabrictest.Groups(t, 2)
	require.NoError(t, closed[0].Close())
	assert.ErrorIs(t, closed[0].Control.Barrier(t.Context()), fabric.ErrClosed)
	assert.ErrorIs(t, closed[0].Host.Barrier(), fabric.ErrClosed)
	_, _, err = closed[1].Control.Recv(t.Context(), nil)
	assert.ErrorIs(t, err, fabric.ErrPeerFailed, "nobody is left to send")
	assert.ErrorIs(t, closed[1].Host.Barrier(), fabric.ErrPeerFailed)

	// What was sent before a rank left is still received, and a barrier that it has entered still opens.
	left := fabrictest.Groups(t, 2)
	require.NoError(t, left[0].Control.Send(t.Context(), 1, []byte("bye")))
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, left[0].Control.Barrier(short), context.DeadlineExceeded)
	require.NoError(t, left[0].Close())
	buf := make([]byte, 8)
	n, _, err := left[1].Control.Recv(t.Context(), buf)
	require.NoError(t, err)
	assert.Equal(t, "bye", string(buf[:n]))
	require.NoError(t, left[1].Control.Barrier(t.Context()))
	assert.ErrorIs(t, left[1].Control.Barrier(t.Context()), fabric.ErrPeerFailed)
}

// mute is a testing.TB that notes what would have failed.
type mute struct {
	testing.TB
	said []string
}

func (m *mute) Helper()                   {}
func (m *mute) Errorf(f string, a ...any) { m.said = append(m.said, fmt.Sprintf(f, a...)) }

func TestEachNamesTheRankThatFailed(t *testing.T) {
	m := &mute{TB: t}
	fabrictest.Each(m, fabrictest.Groups(t, 3), func(g *fabrictest.Group) error {
		if g.Rank() == 1 {
			return errors.New("no luck")
		}
		return nil
	})
	assert.Equal(t, []string{"rank 1: no luck"}, m.said)
}

func TestWalkErrorSeesWhatIsBlank(t *testing.T) {
	good := func() *fabric.OpError {
		return &fabric.OpError{Op: "barrier", Path: "memory", Group: "g", Rank: 1, Peer: 2, From: 0,
			Err: &fabric.Cause{Kind: fabric.ErrTimeout, Peer: 2, From: 0, Text: "nothing moved"}}
	}
	assert.NoError(t, fabrictest.WalkError(nil))
	assert.NoError(t, fabrictest.WalkError(good()))
	assert.NoError(t, fabrictest.WalkError(fmt.Errorf("more: %w", good())))
	for what, spoil := range map[string]func(e *fabric.OpError){
		"operation":   func(e *fabric.OpError) { e.Op = " " },
		"path":        func(e *fabric.OpError) { e.Path = "" },
		"group":       func(e *fabric.OpError) { e.Group = "" },
		"rank":        func(e *fabric.OpError) { e.Rank = -1 },
		"peer":        func(e *fabric.OpError) { e.Peer = 1 },
		"no err":      func(e *fabric.OpError) { e.Err = nil },
		"foreign err": func(e *fabric.OpError) { e.Err = errors.New("something") },
		"silent":      func(e *fabric.OpError) { e.Err.(*fabric.Cause).Text = "" },
		"unreported":  func(e *fabric.OpError) { e.From, e.Err.(*fabric.Cause).From = -1, -1 },
		"no culprit":  func(e *fabric.OpError) { e.Peer, e.Err.(*fabric.Cause).Peer = -1, -1 },
		"two kinds":   func(e *fabric.OpError) { e.Err.(*fabric.Cause).Err = fabric.ErrAborted },
		"local":       func(e *fabric.OpError) { e.Local = errors.New("something") },
		"bare kind":   func(e *fabric.OpError) { e.Err = fabric.ErrPeerFailed },
	} {
		e := good()
		spoil(e)
		assert.Error(t, fabrictest.WalkError(e), what)
	}
	assert.Error(t, fabrictest.WalkError(errors.New("bare")))
}

func ExampleGroups() {
	t := &testing.T{} // in a test: the one that it got
	groups := fabrictest.Groups(t, 2)
	fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
		sum := []float32{float32(g.Rank() + 1)}
		if err := g.Host.AllReduce(fabric.Bytes(sum), fabric.Bytes(sum), fabric.F32, fabric.Sum); err != nil {
			return err
		}
		if g.Rank() == 0 {
			fmt.Println("sum", sum[0])
		}
		return nil
	})
	// Output: sum 3
}
