package hipgo_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// A process keeps what it has loaded, so each library is met in one of its own: this test binary again.
const (
	libraryVariable = "HIPGO_TEST_LIBRARY"
	secondVariable  = "HIPGO_TEST_SECOND"
)

func TestALibraryOfEachMajorIsOpenedAndPassesTheSelfTest(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	hiptest.Start(t, hiptest.Settings{}) // or skips: nothing can be opened
	for major := 5; major <= 7; major++ {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			library, second := hiptest.Library(t, major), hiptest.Library(t, 5+(major-4)%3)
			cmd := exec.CommandContext(within(t, 6*bound), exe, "-test.run=^TestInAProcessWithALibrary$")
			cmd.Env = append(os.Environ(), libraryVariable+"="+library, secondVariable+"="+second, "SOFTHIP=devices=2")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, string(out))
			assert.Contains(t, string(out), "opened HIP "+strconv.Itoa(major)+".")
			assert.Empty(t, stderr.String())
		})
	}
}

func TestInAProcessWithALibrary(t *testing.T) {
	library, second := os.Getenv(libraryVariable), os.Getenv(secondVariable)
	if library == "" {
		t.Skip("only in a process of its own")
	}
	rt, err := hipgo.Open(hipgo.Config{Library: library})
	require.NoError(t, err)
	os.Stdout.WriteString("opened " + rt.String() + "\n")
	assert.Equal(t, library, rt.Library())
	again, err := hipgo.Open(hipgo.Config{})
	require.NoError(t, err, "the resident one is shared")
	assert.Equal(t, rt.String(), again.String())
	_, err = hipgo.Open(hipgo.Config{Library: second})
	require.ErrorIs(t, err, hipgo.ErrSecondRuntime)
	assert.ErrorContains(t, err, second)
	assert.ErrorContains(t, err, library)
	_, err = hipgo.Open(hipgo.Config{Library: library, Handle: 1})
	require.ErrorContains(t, err, "a Library ("+library+") and a Handle")

	d, err := rt.Choose(hipgo.Selector{LocalRank: 1})
	require.NoError(t, err)
	assert.Contains(t, d.String(), library)
	require.NoError(t, d.SelfTest(within(t, bound)))
	memory, err := d.Malloc(1 << 16)
	require.NoError(t, err)
	p, err := rt.Pointer(memory.Ptr())
	require.NoError(t, err)
	assert.Equal(t, hipgo.MemoryDevice, p.Kind)
	assert.Equal(t, 1, p.Device)
	require.NoError(t, memory.Close())
}
