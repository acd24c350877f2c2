package hipshim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compile(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	cmd := exec.CommandContext(t.Context(), cc, append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestItCompilesWithoutAWarning(t *testing.T) {
	files, err := filepath.Glob("*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out, err := compile(t, ".", files...)
	require.NoError(t, err, out)
}

func TestAPrototypeThatDiffersFromTheVendorsIsFound(t *testing.T) {
	if out, err := compile(t, ".", "-include", "hip/hip_version.h", "table.c"); err != nil {
		t.Skip("no HIP headers (libamdhip64-dev): ", out)
	}
	table, err := os.ReadFile("table.h")
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"hipStreamWaitValue64": {"void *p, uint64_t value, unsigned flags, uint64_t mask", "void *p, uint64_t value, unsigned flags, uint32_t mask"},
		"hipMalloc":            {"X(hipMalloc, (void **p, size_t bytes))", "X(hipMalloc, (void **p, unsigned bytes))"},
		"hipStreamWaitEvent":   {"(hipStream_t stream, hipEvent_t event, unsigned flags)", "(hipEvent_t event, hipStream_t stream, unsigned flags)"},
		"hipMemcpyAsync":       {"(void *dst, const void *src, size_t bytes, hipMemcpyKind kind", "(void *dst, const void *src, hipMemcpyKind kind, size_t bytes"},
	} {
		changed := strings.Replace(string(table), change[0], change[1], 1)
		require.NotEqual(t, string(table), changed, name)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "table.h"), []byte(changed), 0o644))
		for _, same := range []string{"hipcheck.c", "hipshim.h"} {
			text, err := os.ReadFile(same)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, same), text, 0o644))
		}
		out, err := compile(t, dir, "hipcheck.c")
		require.Error(t, err, name)
		assert.Contains(t, out, name+" differs from the vendor")
	}
}
