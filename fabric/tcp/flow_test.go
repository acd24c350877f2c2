package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
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
	f := flow{window: 100}
	f.addOut(span{buf: make([]byte, 1000)}, false)
	f.addIn(span{buf: make([]byte, 500)}, false)
	assert.Equal(t, 100, f.allowed(0), "a window beyond nothing")
	f.arrived = 200
	assert.Equal(t, 600, f.allowed(50), "half has come: half may go, and a window")
	f.arrived = 500
	assert.Equal(t, 1000, f.allowed(0), "nothing more is due: no bound")

	oneWay := flow{window: 100}
	oneWay.addOut(span{buf: make([]byte, 1000)}, false)
	oneWay.addIn(span{}, false)
	assert.Equal(t, 1000, oneWay.allowed(0), "nothing was ever due")
	f.window, f.arrived = 0, 0
	assert.Equal(t, 1000, f.allowed(0), "no window is no bound")
}

func TestWindowIsForLoopbackUnlessAsked(t *testing.T) {
	assert.Equal(t, DefaultWindow, window(0, true))
	assert.Zero(t, window(0, false))
	assert.Zero(t, window(-1, true))
	assert.Equal(t, 7, window(7, false))
}

func TestConfigNamesWhatIsOutOfRange(t *testing.T) {
	for name, c := range map[string]Config{
		"EagerBytes is -1":           {EagerBytes: -1},
		"EagerBytes is 16777217":     {EagerBytes: MaxEagerBytes + 1},
		"Window is 8; at least 4096": {Window: 8},
		"ChunkBytes is 12":           {ChunkBytes: 12},
		"ChunkBytes is -8":           {ChunkBytes: -8},
	} {
		err := c.Validate()
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, name)
	}
}
