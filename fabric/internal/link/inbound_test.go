//go:build linux || darwin

package link

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// Frames of any sizes, read with any guess of what comes: each ends where its own length says, skipped or not.
func TestAFrameEndsWhereItsLengthSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b, ca, cb := pair(t, Options{})
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(inline-2, inline+2), rapid.Just(150<<10)), 1, 6).Draw(rt, "sizes")
		sent := make(chan error, 1)
		go func() {
			for i, n := range sizes {
				if err := drive(a, newSwap(ca, pattern(n, i), nil), 10*time.Second); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for i, n := range sizes {
			r := &reader{c: cb, n: n, ahead: rapid.SampledFrom([]int{0, 1, 16, 300, 1 << 20}).Draw(rt, "ahead"), skip: rapid.Bool().Draw(rt, "skip")}
			require.NoError(rt, drive(b, r, 10*time.Second))
			if !r.skip {
				require.Equal(rt, pattern(n, i), r.got)
			}
		}
		require.NoError(rt, <-sent)
		a.Close()
		b.Close()
	})
}

// reader receives one frame whose place is known after its header only, in two halves with a pause between.
type reader struct {
	c     *Conn
	n     int
	ahead int
	skip  bool
	got   []byte
	moved uint64
}

func (r *reader) Poll() (bool, error) {
	r.c.Expect(r.ahead, nil)
	if !r.c.HeaderReady() || r.c.Placed() && !r.c.Complete() {
		n, err := r.c.Fill()
		if r.moved += uint64(n); n == 0 {
			return err != nil, err
		}
		r.c.Pause()
	}
	if r.c.HeaderReady() && !r.c.Placed() {
		if r.skip {
			r.c.Skip(r.n)
		} else {
			r.got = make([]byte, r.n)
			r.c.Place(r.got)
		}
	}
	if !r.c.Complete() {
		return false, nil
	}
	r.c.Done()
	return true, nil
}

func (r *reader) Progress() uint64 { return r.moved }
func (r *reader) Stalled(bool)     {}

func TestADroppedConnectionLeavesTheOthersAndItsPlace(t *testing.T) {
	a, b, ca, _ := pair(t, Options{SpinFor: 0})
	var far []*Conn
	var near []*Conn
	for range 2 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		require.NoError(t, errors.Join(unix.SetNonblock(fds[0], true), unix.SetNonblock(fds[1], true)))
		c, err := a.Add(fds[0])
		require.NoError(t, err)
		d, err := b.Add(fds[1])
		require.NoError(t, err)
		near, far = append(near, c), append(far, d)
		if len(near) == 1 {
			require.NoError(t, a.Enter())
			a.Drop(ca)
			a.Leave()
		}
	}
	assert.Len(t, a.poller.conns, 2, "the second took the place of the first")
	for i, c := range near {
		require.NoError(t, drive(b, newSwap(far[i], pattern(9, i), nil), time.Second))
		r := &reader{c: c, n: 9}
		require.NoError(t, drive(a, r, time.Second))
		assert.Equal(t, pattern(9, i), r.got)
	}
}

func TestTendingExcludesADriver(t *testing.T) {
	a, _, _, _ := pair(t, Options{})
	ran := false
	assert.True(t, a.Tend(func() { ran = true }))
	assert.True(t, ran)
	require.NoError(t, a.Enter())
	assert.False(t, a.Tend(func() { t.Error("two at once") }))
	a.Leave()
	a.Close()
	assert.False(t, a.Tend(func() { t.Error("closed") }))
}
