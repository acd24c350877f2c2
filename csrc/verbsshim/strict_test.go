package verbsshim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compile(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	out, err := exec.CommandContext(t.Context(), cc, append([]string{"-std=gnu11", "-Wall", "-Wextra"}, args...)...).CombinedOutput()
	return string(out), err
}

func sources(t *testing.T) []string {
	files, err := filepath.Glob("*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	if out, err := compile(t, "-fsyntax-only", "-include", "infiniband/verbs.h", "-x", "c", "/dev/null"); err != nil {
		t.Skip("no libibverbs-dev: ", out)
	}
	return files
}

func TestItCompilesWithoutAWarning(t *testing.T) {
	files := sources(t)
	out, err := compile(t, append([]string{"-Werror", "-fsyntax-only"}, files...)...)
	require.NoError(t, err, out)
}

// Not even the header's inlines may bring a symbol of libibverbs, or the binary would need it to start.
func TestNothingOfLibibverbsIsLinked(t *testing.T) {
	object := filepath.Join(t.TempDir(), "all.o")
	for _, optimised := range []string{"-O0", "-O2"} {
		out, err := compile(t, append([]string{optimised, "-r", "-nostdlib", "-o", object}, sources(t)...)...)
		require.NoError(t, err, out)
		list, err := exec.CommandContext(t.Context(), "nm", "-u", object).CombinedOutput()
		if err != nil {
			t.Skip("no nm: ", err)
		}
		for _, symbol := range strings.Fields(string(list)) {
			assert.NotContains(t, symbol, "ibv_", optimised)
		}
	}
}

// The prototypes of what not every header has are ours; this one's say whether they are right.
func TestAnOptionalPrototypeIsTheHeaders(t *testing.T) {
	sources(t)
	const checks = `
#include "table.h"
#define SAME(name, version, result, args) _Static_assert(__builtin_types_compatible_p(__typeof__(&name), result(*) args), #name " differs from the header");
#define verbsshim_gid ibv_gid_entry
VERBSSHIM_OPTIONAL(SAME)
`
	check := func(of string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "cc", "-std=gnu11", "-fsyntax-only", "-I.", "-x", "c", "-")
		cmd.Stdin = strings.NewReader(of)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := check(checks)
	if err != nil && strings.Contains(out, "undeclared") {
		t.Skip("an old header: ", out)
	}
	require.NoError(t, err, out)
	out, err = check(checks + "\nSAME(ibv_reg_mr_iova2, 0, struct ibv_mr *, (struct ibv_pd *, void *, size_t, uint64_t, uint64_t))")
	require.Error(t, err)
	assert.Contains(t, out, "ibv_reg_mr_iova2 differs from the header")
}

func TestAMissingHeaderIsOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	headers, err := filepath.Glob("*.h")
	require.NoError(t, err)
	for _, f := range append(append(headers, "cgo.go"), sources(t)...) {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		write(f, strings.ReplaceAll(string(text), "infiniband/verbs.h", "infiniband/absent.h"))
	}
	write("go.mod", "module example.org/verbsshim\n")
	build := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := build(".")
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(out, "error:"), out)
	assert.Contains(t, out, "package verbs needs <infiniband/absent.h>: install libibverbs-dev (rdma-core-devel, rdma-core), or build with -tags noverbs")
	write("doc.go", "package verbsshim\n")
	out, err = build("-tags", "noverbs", ".")
	require.NoError(t, err, out)
}
