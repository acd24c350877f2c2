package ranks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCloseTakesItsFolderAndNothingElse(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	require.NoError(t, os.WriteFile(secretName, []byte("mine"), 0o600))
	require.NoError(t, (&Job{}).Close())
	assert.FileExists(t, secretName, "a job without a folder has nothing to remove")

	dir := filepath.Join(here, "job")
	j := &Job{dir: dir, ranks: []*rank{{number: 0}, {number: 1}}}
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, f := range []string{secretName, masterName, "status-1.sock", "left by a rank"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	require.NoError(t, j.Close())
	assert.NoDirExists(t, dir)
	require.NoError(t, j.Close())
	assert.FileExists(t, secretName)
}
