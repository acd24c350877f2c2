package stage_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wire is a host path that a test looks into.
type wire struct {
	fabric.Transport
	begin func(*fabric.Call, fabric.Pending) fabric.Pending // nil: as it is
	abort func(nth int)                                     // before it takes effect; nil: nothing
	nth   atomic.Int32                                      // of Abort's calls, which have begun
	ended atomic.Bool                                       // one of them has taken effect
}

func (w *wire) Begin(c *fabric.Call) (fabric.Pending, error) {
	p, err := w.Transport.Begin(c)
	if err != nil || w.begin == nil {
		return p, err
	}
	return w.begin(c, p), nil
}

func (w *wire) Abort(cause error) {
	if n := int(w.nth.Add(1)); w.abort != nil {
		w.abort(n)
	}
	w.Transport.Abort(cause)
	w.ended.Store(true)
}

// slow moves a little with every Poll, and is done late.
type slow struct {
	fabric.Pending
	until time.Time
	moved uint64
}

func (s *slow) Progress() uint64 { return s.moved }

func (s *slow) Poll() (bool, error) {
	if s.moved++; time.Now().Before(s.until) {
		return false, nil
	}
	return s.Pending.Poll()
}

// slowly makes the wire of a config take so long over each call, or part of one.
func slowly(c *stage.Config, each time.Duration) {
	c.Transport = &wire{Transport: c.Transport, begin: func(_ *fabric.Call, p fabric.Pending) fabric.Pending {
		return &slow{Pending: p, until: time.Now().Add(each)}
	}}
}

// Nothing lets a stream go before the wire has ended, whoever is first to see the failure: neither the proxy nor, where a
// driver holds that, the watch.
func TestTheWireEndsBeforeStreamsAreLetGo(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(map[bool]string{false: "by the proxy", true: "by the watch"}[held], func(t *testing.T) {
			first, stuck, holding := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var w *wire
			ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) {
				if r > 0 {
					return
				}
				w = &wire{Transport: c.Transport, abort: func(nth int) {
					if nth == 1 { // the one who failed has said so, and has not come to the wire yet
						<-first
					}
				}}
				c.Transport = w
				d.before = func(m string, n int) {
					if held && m == "Copy" && n == 1 {
						close(holding)
						<-stuck
					}
				}
			})
			r := ranks[0]
			in, _ := r.memory(pattern(0, 100))
			out, _ := r.memory(make([]byte, 200))
			require.NoError(t, r.AllGather(r.s, out, in, 100))
			if held {
				<-holding
			} else {
				require.Eventually(t, func() bool { return r.path.Progress().Running }, 5*time.Second, time.Millisecond)
			}
			gone := make(chan struct{})
			go func() { defer close(gone); r.path.Abort(errors.New("enough")) }()
			assert.True(t, r.passes(10*time.Second))
			assert.True(t, w.ended.Load(), "the stream runs on and the wire may still write its buffers")
			if !held {
				assert.False(t, r.path.Progress().Running, "the call on the wire has ended with it")
			}
			close(first)
			close(stuck)
			<-gone
		})
	}
}

// The lengths of the part on the wire are its own, while the next part is fetched in place.
func TestLengthsOnTheWireAreItsOwn(t *testing.T) {
	lengths := []int{100, 20} // parts of 64: {64, 20}, {36, 0}
	ranks := openRanks(t, 2, func(_ int, c *stage.Config, d *double) {
		c.PartBytes, d.integrated = 64, true
		c.Transport = &wire{Transport: c.Transport, begin: func(c *fabric.Call, p fabric.Pending) fabric.Pending {
			return &patient{Pending: p, t: t, c: c, lengths: slices.Clone(c.Lengths)}
		}}
	})
	for i, r := range ranks {
		in, err := r.path.Alloc(lengths[i])
		require.NoError(t, err)
		out, err := r.path.Alloc(200)
		require.NoError(t, err)
		require.NoError(t, r.AllGatherV(r.s, out.Device(), in.Device(), 100, lengths))
		defer func() { assert.NoError(t, errors.Join(in.Close(), out.Close())) }()
	}
	for _, r := range ranks {
		r.wait(t)
	}
}

// patient is done only after the proxy has had its turns at fetching, and its call is what it was.
type patient struct {
	fabric.Pending
	t       *testing.T
	c       *fabric.Call
	lengths []int
	polls   int
}

func (p *patient) Poll() (bool, error) {
	assert.Equal(p.t, p.lengths, p.c.Lengths)
	if p.polls++; p.polls <= 3 {
		return false, nil
	}
	return p.Pending.Poll()
}
