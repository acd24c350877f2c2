package stage_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wrong is the design that this package must not have: an exchange's copies are on the engine's own stream, around its wait.
// Both ranks have queued their calls; the host answers a call once both have published it.
type wrong struct {
	s      [2]hipgo.Stream
	words  [2]*hipgo.HostBuffer // ready words, then done words
	slabs  [2]*hipgo.HostBuffer
	memory [2]*hipgo.Buffer
}

const wrongCalls = 8

func (w *wrong) queue(rank, n int) error {
	s, at := w.s[rank], w.words[rank].Words()
	for call := range wrongCalls {
		if err := s.Copy(w.slabs[rank].Ptr(), w.memory[rank].Ptr(), n, hipgo.CopyDefault); err != nil {
			return err
		}
		if err := s.WriteWait(at.Addr(call), 1, at.Addr(wrongCalls+call), 1); err != nil {
			return err
		}
		if err := s.Copy(w.memory[rank].Ptr(), w.slabs[rank].Ptr(), n, hipgo.CopyDefault); err != nil {
			return err
		}
	}
	return nil
}

// answer carries calls out until all are done, or limit is over.
func (w *wrong) answer(limit time.Duration) (done int) {
	for began := time.Now(); done < wrongCalls && time.Since(began) < limit; {
		if w.words[0].Words().Load(done) == 0 || w.words[1].Words().Load(done) == 0 {
			runtime.Gosched()
			continue
		}
		for _, words := range w.words {
			words.Words().Store(wrongCalls+done, 1)
		}
		done++
	}
	return done
}

func TestCopiesOnTheEnginesStreamHang(t *testing.T) {
	for _, n := range []int{16384, 16385} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			world := hiptest.Start(t, hiptest.Settings{SDMARings: 1})
			d, w := world.Device(0), &wrong{}
			for r := range 2 {
				var err error
				w.s[r], err = d.NewStream(hipgo.StreamNonBlocking)
				require.NoError(t, err)
				w.words[r], err = d.HostMalloc(4096)
				require.NoError(t, err)
				w.slabs[r], err = d.HostMalloc(n)
				require.NoError(t, err)
				w.memory[r], err = d.Malloc(n)
				require.NoError(t, err)
			}
			for r := range 2 {
				require.NoError(t, w.queue(r, n))
			}
			if n <= 16384 {
				assert.Equal(t, wrongCalls, w.answer(20*time.Second))
			} else {
				assert.Less(t, w.answer(2*time.Second), wrongCalls, "the copies of one rank wait in the ring behind the other's, which wait for it")
				parked := world.Parked()
				t.Log(parked)
				assert.Contains(t, parked, "it is 0", "a stream waits on a done word")
				assert.Contains(t, parked, "Memcpy", "a copy waits")
				for _, words := range w.words {
					for call := range wrongCalls {
						words.Words().Store(wrongCalls+call, math.MaxUint64)
					}
				}
			}
			for r := range 2 {
				require.NoError(t, w.s[r].Synchronize(t.Context()), "released")
				require.NoError(t, w.s[r].Close())
				require.NoError(t, w.words[r].Close())
				require.NoError(t, w.slabs[r].Close())
				require.NoError(t, w.memory[r].Close())
			}
		})
	}
}
