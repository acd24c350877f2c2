//go:build linux || darwin

package tcp

import (
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Ranks that never spin park in every call: an event that one round takes from the poller must not be lost to the park
// that follows.
func TestParkedRanksMissNoEvent(t *testing.T) {
	const world, calls = 5, 60
	ts := open(t, world, Config{SpinFor: -1, EagerBytes: 64, ChunkBytes: 64})
	var wg sync.WaitGroup
	for _, tr := range ts {
		for p := range tr.peers {
			tr.peers[p].Window = 8 // a stall every few bytes
		}
		c := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
		wg.Go(func() {
			in, out := make([]byte, 4<<10), make([]byte, 4<<10)
			for range calls {
				if err := c.AllReduce(out, in, fabric.F32, fabric.Sum); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
