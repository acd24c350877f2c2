package hipfabric

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALaneFileRemembersByNetwork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "lanes.json")
	f := laneFile(path)
	_, ok := f.Load("a cable")
	assert.False(t, ok, "there is no file yet")
	require.NoError(t, f.Store("a cable", 4))
	require.NoError(t, f.Store("another", 2))
	require.NoError(t, f.Store("a cable", 8))
	lanes, ok := f.Load("a cable")
	assert.True(t, ok)
	assert.Equal(t, 8, lanes)
	lanes, _ = f.Load("another")
	assert.Equal(t, 2, lanes)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no file of a write is left")

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, ok = f.Load("a cable")
	assert.False(t, ok, "a spoilt file knows nothing")
	require.NoError(t, f.Store("a cable", 1))
	lanes, ok = f.Load("a cable")
	assert.True(t, ok && lanes == 1, "and is replaced")
	assert.Error(t, laneFile(filepath.Join(path, "below a file")).Store("a cable", 1))
}
