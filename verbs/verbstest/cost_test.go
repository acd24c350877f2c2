package verbstest_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func BenchmarkWrite(b *testing.B) {
	for _, n := range []uint32{16, 64 << 10} {
		b.Run(map[bool]string{true: "16B", false: "64KiB"}[n == 16], func(b *testing.B) {
			f := fabric(b, 1, verbstest.Switch(2, 1))
			x, y := pair(b, f, verbs.QPConfig{}, verbs.Connection{})
			b.SetBytes(int64(n))
			for b.Loop() {
				_, err := x.QP.PostSend(x.Write(y, 0, 0, n))
				require.NoError(b, err)
				_, err = x.Poll(1)
				require.NoError(b, err)
			}
		})
	}
}

// stations are two ends in seams, joined.
func stations(t testing.TB) (a, b *conform.Station) {
	t.Helper()
	f := fabric(t, 1, verbstest.Switch(2, 1))
	var ends [2]*conform.Station
	for i, l := range f.Libraries() {
		e, err := conform.NewStation(within(t), l.Seam(), "mem0")
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, e.End()) })
		ends[i] = e
	}
	require.NoError(t, ends[0].Join(ends[1]))
	require.NoError(t, ends[1].Join(ends[0]))
	return ends[0], ends[1]
}

// flag sends a payload and, behind it, its number.
func flag(from, to *conform.Station, n uint64) error {
	*from.Word(8000) = n
	_, err := from.Post(from.QP.Handle, from.Flagged(to, from.Piece(0, 16), verbs.SeamPiece{}))
	return err
}

// spin polls as who waits for a flag does, without giving its core away.
func spin(e *conform.Station, n uint64, into []verbs.SeamCompletion) error {
	for atomic.LoadUint64(e.Word(1024)) != n {
		if _, err := e.Poll(e.HCA, into); err != nil {
			return err
		}
	}
	return nil
}

// Two ranks that spin leave no core to the fabric's goroutine.
func TestWhoPollsDoesTheWork(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	a, b := stations(t)
	into := make([]verbs.SeamCompletion, 16)
	began := time.Now()
	for n := range uint64(1000) {
		require.NoError(t, flag(a, b, n+1))
		require.NoError(t, spin(b, n+1, into))
		_, err := a.Poll(a.HCA, into)
		require.NoError(t, err)
	}
	assert.Less(t, time.Since(began), 3*time.Second, "a preemption for each would be ten")
}

func TestWhoPollsDoesNothingThatIsHeldOrOver(t *testing.T) {
	for name, stop := range map[string]func(*verbstest.Fabric){"held": (*verbstest.Fabric).Hold, "closed": (*verbstest.Fabric).Close} {
		f := fabric(t, 1, verbstest.Switch(2, 1))
		a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
		stop(f)
		post(t, a, a.Write(b, 0, 0, 8))
		n, err := a.CQ.Poll(make([]verbs.WC, 1))
		require.NoError(t, err)
		assert.Zero(t, n, name)
	}
}

// A payload and its flag one way, then the other, between ranks that spin.
func BenchmarkFlagThereAndBack(b *testing.B) {
	x, y := stations(b)
	ended := make(chan error, 1)
	b.ReportAllocs()
	n := uint64(0)
	var last atomic.Uint64
	go func() {
		into := make([]verbs.SeamCompletion, 16)
		for n := uint64(1); ; n++ {
			for atomic.LoadUint64(y.Word(1024)) != n {
				if l := last.Load(); l != 0 && n > l {
					ended <- nil
					return
				}
				if _, err := y.Poll(y.HCA, into); err != nil {
					ended <- err
					return
				}
			}
			if err := flag(y, x, n); err != nil {
				ended <- err
				return
			}
		}
	}()
	into := make([]verbs.SeamCompletion, 16)
	for b.Loop() {
		n++
		if err := flag(x, y, n); err != nil {
			b.Fatal(err)
		}
		if err := spin(x, n, into); err != nil {
			b.Fatal(err)
		}
	}
	last.Store(n)
	require.NoError(b, <-ended)
}
