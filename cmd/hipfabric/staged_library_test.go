//go:build linux && cgo

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestTwoRanksOnOneGPUAreSaidToShareIt(t *testing.T) {
	library := hiptest.Library(t, 7)
	code, out, stderr := runs(t, "perf", "-n", "2", "--kind", "staged", "--device", "hip:0", "--library", library, "--op", "all-gather", "--sizes", "4K", "--iters", "5")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.Contains(t, out, "one GPU shared")
	assert.Contains(t, out, library)
	t.Setenv("LD_LIBRARY_PATH", filepath.Dir(library))
	code, out, stderr = runs(t, "perf", "-n", "2", "--kind", "staged", "--op", "all-gather", "--sizes", "4K", "--iters", "5")
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	assert.Contains(t, out, "one GPU shared")
}

func TestDoctorHipListsTheGPUsOfALibrary(t *testing.T) {
	for _, major := range []int{5, 6, 7} {
		library := hiptest.Library(t, major)
		code, r, stderr := hip(t, "--library", library)
		require.Equal(t, exitOK, code, stderr)
		assert.Equal(t, library, r.Library)
		require.Len(t, r.GPUs, 1)
		g := r.GPUs[0]
		assert.Equal(t, []any{0, "gfx1151", "", ""}, []any{g.Ordinal, g.Arch, g.SelfTest, g.Kernels})
		assert.NotEmpty(t, g.PCI)
		assert.NotZero(t, g.MemoryBytes)
	}
	t.Setenv("LD_LIBRARY_PATH", filepath.Dir(hiptest.Library(t, 7)))
	code, out, stderr := runs(t, "doctor", "hip")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"gfx1151", "self-test", "kernels", "beta", "libamdhip64.so.7"} {
		assert.Contains(t, out, want)
	}
}

func TestDoctorHipSaysWhatNoGateCanUse(t *testing.T) {
	library := hiptest.Library(t, 7)
	t.Setenv("SOFTHIP", "stream_wait=0")
	code, r, stderr := hip(t, "--library", library)
	require.Equal(t, exitOK, code, "the kernels gate remains: %s", stderr)
	assert.NotEmpty(t, r.GPUs[0].SelfTest)
	t.Setenv("SOFTHIP", "arch=gfx803")
	code, r, _ = hip(t, "--library", library)
	require.Equal(t, exitOK, code, "the words gate remains")
	assert.Contains(t, r.GPUs[0].Kernels, "hipErrorNoBinaryForGpu")
	t.Setenv("SOFTHIP", "arch=gfx803 stream_wait=0")
	code, _, stderr = hip(t, "--library", library)
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, stderr, "no gate can use it")
}

func TestDoctorHipTakesBothWordsForNoGPU(t *testing.T) {
	library := hiptest.Library(t, 7)
	for _, settings := range []string{"no_gpu=100", "no_gpu=101"} {
		t.Setenv("SOFTHIP", settings)
		code, r, _ := hip(t, "--library", library)
		assert.Equal(t, exitEnvironment, code)
		assert.Contains(t, r.None, "no GPU")
		assert.Contains(t, r.None, library)
	}
}

func TestDoctorHipConformsAndItsReceiptIsInTheDocument(t *testing.T) {
	library := hiptest.Library(t, 7)
	code, r, stderr := hip(t, "--library", library, "--conform", "--bound", "1s")
	require.Equal(t, exitOK, code, stderr)
	require.NotNil(t, r.GPUs[0].Conform)
	assert.True(t, r.GPUs[0].Conform.OK(), "%v", r.GPUs[0].Conform)
	assert.Equal(t, library, r.GPUs[0].Conform.Library)
}

func TestADeviceThatIsNotThereIsNamed(t *testing.T) {
	code, _, stderr := runs(t, "perf", "-n", "1", "--kind", "staged", "--device", "hip:1", "--library", hiptest.Library(t, 7), "--op", "barrier")
	assert.Equal(t, exitUsage, code, stderr)
	assert.Contains(t, stderr, "--device hip:1: HIP 7.15.26333")
	assert.Contains(t, stderr, "has the GPUs 0 to 0")
	code, r, stderr := hip(t, "--cuda", "--library", "/nowhere/libcuda.so.1")
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, r.None, "/nowhere/libcuda.so.1")
	assert.Contains(t, stderr, "/nowhere/libcuda.so.1")
	code, _, stderr = runs(t, "perf", "-n", "1", "--kind", "staged", "--device", "cuda:0", "--library", "/nowhere/libcuda.so.1", "--op", "barrier")
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, stderr, "/nowhere/libcuda.so.1")
}
