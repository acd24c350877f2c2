package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric/fabric"
)

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
