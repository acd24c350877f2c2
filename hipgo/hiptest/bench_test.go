//go:build cgo && linux

package hiptest_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func opened(b *testing.B) (s hipgo.Stream, words hipgo.Words) {
	w, err := hiptest.New(hiptest.Settings{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = w.Close() })
	host, err := w.Device(0).HostMalloc(4096)
	require.NoError(b, err)
	s, err = w.Device(0).NewStream(hipgo.StreamNonBlocking)
	require.NoError(b, err)
	return s, host.Words()
}

// Queueing what a staged call queues, the stream never waiting.
func BenchmarkWriteWait(b *testing.B) {
	s, words := opened(b)
	words.Store(1, 1<<62)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		require.NoError(b, s.WriteWait(words.Addr(0), uint64(i), words.Addr(1), uint64(i)))
	}
}

// A stream's write seen by the host, the host's store, the stream released and seen to be.
func BenchmarkRoundTrip(b *testing.B) {
	s, words := opened(b)
	seen := func(i int, v uint64) {
		for words.Load(i) != v {
			runtime.Gosched()
		}
	}
	for v := uint64(1); b.Loop(); v++ {
		require.NoError(b, s.WriteWait(words.Addr(0), v, words.Addr(1), v))
		require.NoError(b, s.WriteValue64(words.Addr(2), v))
		seen(0, v)
		words.Store(1, v)
		seen(2, v)
	}
}
