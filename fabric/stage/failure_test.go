package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passes says whether all that is on a stream has run within a limit.
func (r *rank) passes(limit time.Duration) bool {
	reached := make(chan struct{})
	r.d.line(uintptr(r.s)).put(func() { close(reached) })
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-reached:
		return true
	case <-late.C:
		return false
	}
}

// gathers queues n all-gathers on every rank, and gives what each rank's calls and wait said.
func gathers(t *testing.T, ranks []*rank, n, bytes int) []error {
	t.Helper()
	errs := make([]error, len(ranks))
	for i, r := range ranks {
		in, _ := r.memory(pattern(i, bytes))
		out, _ := r.memory(make([]byte, len(ranks)*bytes))
		for range n {
			if errs[i] = r.AllGather(r.s, out, in, bytes); errs[i] != nil {
				break
			}
		}
	}
	for i, r := range ranks {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := r.Wait(ctx, r.s); err != nil && errs[i] == nil {
			errs[i] = err
		}
		cancel()
	}
	return errs
}

// A driver's method that fails once, on any rank, ends all ranks alike and leaves no stream parked.
func TestAFailureAtEveryMethod(t *testing.T) {
	for _, method := range []string{"Copy", "Record", "Query", "WriteWait", "Capturing", "Inspect"} {
		for faulty := range 2 {
			for _, nth := range []int{1, 2, 5} {
				t.Run(fmt.Sprintf("%s %d on rank %d", method, nth, faulty), func(t *testing.T) {
					ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) { c.PartBytes = 64 })
					broken := errors.New("hipErrorUnknown")
					d := ranks[faulty].d
					d.mu.Lock()
					d.calls[method] = 0
					d.fault = func(m string, n int) error {
						if m == method && n == nth {
							return broken
						}
						return nil
					}
					d.mu.Unlock()
					errs := gathers(t, ranks, 8, 200)
					for i, err := range errs {
						require.ErrorIs(t, err, fabric.ErrDevice, "rank %d", i)
						require.ErrorContains(t, err, "hipErrorUnknown")
						require.NoError(t, fabrictest.WalkError(err))
						var op *fabric.OpError
						require.ErrorAs(t, err, &op)
						assert.Equal(t, faulty, op.Peer)
						assert.Equal(t, fabric.ScopeDevice, op.Scope())
						assert.True(t, ranks[i].passes(5*time.Second), "rank %d's stream is parked", i)
					}
					require.ErrorIs(t, ranks[1-faulty].Barrier(ranks[1-faulty].s), fabric.ErrDevice)
				})
			}
		}
	}
}

// landLate lets the lost copies of a rank land: its device synchronises.
func (r *rank) landLate() {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.d.lose = nil
	for _, s := range r.d.streams {
		s.land()
	}
}

// A copy that never ends is a failure like a silent peer's, and what it may write is kept until the device has synchronised.
func TestALostCopyEndsByTheTimeout(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 4; nth++ {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			t.Parallel()
			ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) {
				c.Timeout = 800 * time.Millisecond
				if r == 1 {
					d.lose = func(n int) bool { return n == nth }
				}
			})
			began := time.Now()
			errs := gathers(t, ranks, 3, 100)
			took := time.Since(began)
			for i, err := range errs {
				require.ErrorIs(t, err, fabric.ErrDevice, "rank %d", i)
				require.ErrorContains(t, err, "has not landed within 700ms, and still may")
				assert.True(t, ranks[i].passes(5*time.Second), "rank %d's stream is parked", i)
			}
			assert.Less(t, took, 8*time.Second)
			ranks[1].landLate()
		})
	}
}

func TestWhatACopyMayStillWriteIsNotFreed(t *testing.T) {
	t.Parallel()
	ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) {
		c.Timeout = 300 * time.Millisecond
		if r == 1 {
			d.lose = func(n int) bool { return n == 2 }
		}
	})
	for _, err := range gathers(t, ranks, 3, 100) {
		require.Error(t, err)
	}
	pinned := ranks[1].d.pinned
	before := pinned()
	err := ranks[1].path.Close()
	require.ErrorIs(t, err, fabric.ErrDevice)
	require.ErrorContains(t, err, "not freed yet: a copy of its may still land")
	assert.Equal(t, before, pinned())
	ranks[1].landLate()
	require.Eventually(t, func() bool { return pinned() == 0 }, 5*time.Second, time.Millisecond, "freed once it has landed")
	ranks[1].closed = true
}

// A proxy that is closed while a copy of a group's may still land ends once it has.
func TestAProxyEndsWithItsLastGroup(t *testing.T) {
	d := newDouble(t)
	proxy, err := stage.NewProxy(d)
	require.NoError(t, err)
	path, err := stage.Open(stage.Config{Transport: fabrictest.NewNetwork(1).Transport(0), Driver: d, Proxy: proxy, Timeout: 300 * time.Millisecond})
	require.NoError(t, err)
	r := &rank{StreamCollective: fabric.NewStream(path, fabric.Options{}), path: path, d: d, s: fabric.Stream(d.stream())}
	d.lose = func(n int) bool { return n == 2 }
	require.Error(t, errors.Join(gathers(t, []*rank{r}, 3, 100)...))
	require.ErrorIs(t, path.Close(), fabric.ErrDevice)
	require.NoError(t, proxy.Close())
	r.landLate()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.events) == 0
	}, 5*time.Second, time.Millisecond, "the proxy's streams are closed")
	d.leaks(t)
}
