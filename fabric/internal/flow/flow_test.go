package flow

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBlocksCoverACallOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "size")
		n := rapid.IntRange(0, 5000).Draw(t, "elements") * size
		world := rapid.IntRange(1, 64).Draw(t, "world")
		end := 0
		for r := range world {
			from, to := blockAt(n, size, world, r), blockAt(n, size, world, r+1)
			if from != end || to < from || from%size != 0 {
				t.Fatalf("block %d of %d is %d..%d after %d", r, world, from, to, end)
			}
			end = to
		}
		if end != n {
			t.Fatalf("blocks end at %d of %d", end, n)
		}
	})
}

func TestSendAheadIsBoundedWhileBytesAreDue(t *testing.T) {
	f := Flow{Window: 100}
	f.AddOut(Span{Buf: make([]byte, 1000)}, false)
	f.AddIn(Span{Buf: make([]byte, 500)}, false)
	assert.Equal(t, 100, f.Allowed(0), "a window beyond nothing")
	f.Arrived = 200
	assert.Equal(t, 600, f.Allowed(50), "half has come: half may go, and a window")
	f.Arrived = 500
	assert.Equal(t, 1000, f.Allowed(0), "nothing more is due: no bound")

	oneWay := Flow{Window: 100}
	oneWay.AddOut(Span{Buf: make([]byte, 1000)}, false)
	oneWay.AddIn(Span{}, false)
	assert.Equal(t, 1000, oneWay.Allowed(0), "nothing was ever due")
	f.Window, f.Arrived = 0, 0
	assert.Equal(t, 1000, f.Allowed(0), "no window is no bound")
}
