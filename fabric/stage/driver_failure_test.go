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

// failAt has one call of a method fail without effect.
func (d *double) failAt(method string, nth int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[method] = 0
	d.fault = func(m string, n int) error {
		if m == method && n == nth {
			return errors.New("hipErrorUnknown")
		}
		return nil
	}
}

// A rank that cannot open ends what the others have queued.
func TestADriverThatFailsAtOpenEndsTheOthers(t *testing.T) {
	for method, times := range map[string]int{"AllocHost": 2, "OpenStream": 3} {
		for nth := 1; nth <= times; nth++ {
			for faulty := range 2 {
				t.Run(fmt.Sprintf("%s %d on rank %d", method, nth, faulty), func(t *testing.T) {
					net := fabrictest.NewNetwork(2)
					good, bad := newDouble(t), newDouble(t)
					path, err := stage.Open(stage.Config{Transport: net.Transport(1 - faulty), Driver: good})
					require.NoError(t, err)
					r := &rank{StreamCollective: fabric.NewStream(path, fabric.Options{}), path: path, d: good, s: fabric.Stream(good.stream())}
					require.NoError(t, r.Barrier(r.s))
					bad.failAt(method, nth)
					_, err = stage.Open(stage.Config{Transport: net.Transport(faulty), Driver: bad})
					require.ErrorIs(t, err, fabric.ErrDevice)
					bad.leaks(t)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					require.ErrorIs(t, r.Wait(ctx, r.s), fabric.ErrPeerFailed)
					assert.True(t, r.passes(5*time.Second), "its stream is parked")
					require.NoError(t, r.Close())
					good.leaks(t)
				})
			}
		}
	}
}

// What a rank cannot give back it says, gives back all else, and holds up nobody.
func TestADriverThatFailsAtCloseSaysSo(t *testing.T) {
	for method, times := range map[string]int{"FreeHost": 2, "CloseStream": 3} {
		for nth := 1; nth <= times; nth++ {
			for faulty := range 2 {
				t.Run(fmt.Sprintf("%s %d on rank %d", method, nth, faulty), func(t *testing.T) {
					ranks := openRanks(t, 2, nil)
					for _, err := range gathers(t, ranks, 2, 100) {
						require.NoError(t, err)
					}
					r := ranks[faulty]
					r.d.failAt(method, nth)
					began := time.Now()
					require.ErrorContains(t, r.Close(), "hipErrorUnknown")
					require.NoError(t, ranks[1-faulty].Close())
					assert.Less(t, time.Since(began), 10*time.Second)
					r.closed = true
					r.d.mu.Lock()
					defer r.d.mu.Unlock()
					lost := len(r.d.events)
					for _, b := range r.d.blocks {
						if b.host {
							lost++
						}
					}
					assert.Equal(t, 1, lost, "all but what failed is given back")
					clear(r.d.events)
					r.d.blocks = nil
				})
			}
		}
	}
}
