package stage_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/require"
)

// BenchmarkQueue is what queueing a call costs its engine, beside the two bare operations of the same device.
func BenchmarkQueue(b *testing.B) {
	w := hiptest.Start(b, hiptest.Settings{Devices: 1})
	ranks := openHIP(b, w, 1, stage.Config{}, nil)
	defer done(b, ranks)
	r := ranks[0]
	in, err := r.alloc(4096)
	require.NoError(b, err)
	words, err := r.d.HostMalloc(4096)
	require.NoError(b, err)
	defer func() { _ = words.Close() }()
	seam := r.d.Seam()
	const lap = 200
	b.Run("bare", func(b *testing.B) {
		var spent time.Duration
		for i := range b.N {
			began := time.Now()
			if _, err := seam.WriteWait(uintptr(r.stream()), words.Words().Addr(0), uint64(i), words.Words().Addr(1), 0); err != nil {
				b.Fatal(err)
			}
			spent += time.Since(began)
			if i%lap == lap-1 {
				require.NoError(b, r.s.Synchronize(context.Background()))
			}
		}
		b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/queue")
		require.NoError(b, r.s.Synchronize(context.Background()))
	})
	b.Run("call", func(b *testing.B) {
		b.ReportAllocs()
		var spent time.Duration
		for i := range b.N {
			began := time.Now()
			if err := r.Broadcast(r.stream(), in, 16, 0); err != nil {
				b.Fatal(err)
			}
			spent += time.Since(began)
			if i%lap == lap-1 {
				require.NoError(b, r.Wait(context.Background(), r.stream()))
			}
		}
		b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/queue")
		require.NoError(b, r.Wait(context.Background(), r.stream()))
	})
}

// BenchmarkLatency is a call of two ranks over loopback from queueing until its stream has passed it: on host memory, and
// from device memory, beside a round trip of the device alone.
func BenchmarkLatency(b *testing.B) {
	for _, n := range []int{16, 4096, 65536, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprintf("tcp/%d", n), func(b *testing.B) {
			ends := overTCP(b, 2, "g", 0)
			host := [2]*fabric.Collective{}
			for r := range host {
				host[r] = fabric.New(ends[r].transport, fabric.Options{})
			}
			both(b, func(r int) error {
				in, out := make([]byte, n), make([]byte, 2*n)
				for range b.N {
					if err := host[r].AllGather(out, in); err != nil {
						return err
					}
				}
				return nil
			})
			for r := range host {
				require.NoError(b, host[r].Close())
				_ = ends[r].session.Close(context.Background())
			}
		})
		for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
			b.Run(fmt.Sprintf("%v/%d", gate, n), func(b *testing.B) {
				w := hiptest.Start(b, hiptest.Settings{Devices: 2})
				ends := overTCP(b, 2, "g", 0)
				ranks := openHIP(b, w, 2, stage.Config{Gate: gate}, func(r int, c *stage.Config) { c.Transport = ends[r].transport })
				both(b, func(r int) error {
					in, err := ranks[r].alloc(n)
					if err != nil {
						return err
					}
					out, err := ranks[r].alloc(2 * n)
					if err != nil {
						return err
					}
					for range b.N {
						if err := ranks[r].AllGather(ranks[r].stream(), out, in, n); err != nil {
							return err
						}
						if err := ranks[r].Wait(context.Background(), ranks[r].stream()); err != nil {
							return err
						}
					}
					return nil
				})
				done(b, ranks)
				for _, e := range ends {
					_ = e.session.Close(context.Background())
				}
			})
		}
	}
	b.Run("device/0", func(b *testing.B) {
		w := hiptest.Start(b, hiptest.Settings{Devices: 2})
		var ranks [2]*hip
		for r := range ranks {
			ranks[r] = newHIP(b, w, r)
		}
		both(b, func(r int) error {
			h := ranks[r]
			words, err := h.d.HostMalloc(64)
			if err != nil {
				return err
			}
			defer func() { _ = words.Close() }()
			at := words.Words()
			for i := range b.N {
				if err := h.s.WriteWait(at.Addr(0), uint64(i+1), at.Addr(1), uint64(i+1)); err != nil {
					return err
				}
				for at.Load(0) != uint64(i+1) {
					continue
				}
				at.Store(1, uint64(i+1))
				if err := h.s.Synchronize(context.Background()); err != nil {
					return err
				}
			}
			at.Store(1, math.MaxUint64)
			return nil
		})
		for _, h := range ranks {
			require.NoError(b, h.close())
		}
	})
}

func both(b *testing.B, f func(rank int) error) {
	b.Helper()
	b.ResetTimer()
	var all sync.WaitGroup
	var errs [2]error
	for r := range errs {
		all.Go(func() { errs[r] = f(r) })
	}
	all.Wait()
	b.StopTimer()
	for _, err := range errs {
		require.NoError(b, err)
	}
}
