package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeygenPrintsCommandsThatAShellTakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "the key")
	code, out, _ := command("keygen", file)
	require.Equal(t, exitOK, code)
	assert.Contains(t, out, "scp -p '"+file+"' 'HOST:"+file+"'\n")
	assert.Contains(t, out, "HIPFABRIC_SECRET_FILE='"+file+"', Config.SecretFile or --secret-file '"+file+"'\n")
}

func TestKeygenWritesASecretThatIsKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	code, out, _ := command("keygen", file)
	require.Equal(t, exitOK, code)
	assert.True(t, strings.HasPrefix(out, file+"\n"), out)
	assert.Contains(t, out, "HIPFABRIC_SECRET_FILE="+file)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	raw, err := hex.DecodeString(strings.TrimSuffix(string(first), "\n"))
	require.NoError(t, err)
	assert.Len(t, raw, 32)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}

	code, out, stderr := command("keygen", file)
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, out)
	assert.Contains(t, stderr, "--force")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, first, kept)

	code, _, _ = command("keygen", "--force", file)
	require.Equal(t, exitOK, code)
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "a temporary file is left")
}

func TestKeygenToStandardOutputIsTheSecretAlone(t *testing.T) {
	code, out, stderr := command("keygen", "-")
	require.Equal(t, exitOK, code)
	assert.Empty(t, stderr)
	assert.Len(t, out, 65)
}

func TestKeygenIntoNoFolderIsAnEnvironmentError(t *testing.T) {
	code, _, stderr := command("keygen", filepath.Join(t.TempDir(), "none", "key"))
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, stderr, "write the secret")
}
