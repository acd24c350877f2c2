//go:build cgo && linux

package hiptest_test

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const libraryVariable = "HIPTEST_LIBRARY"

// A library is never unloaded, and a process has one: each version is loaded by a process of its own.
func TestTheLibraryServesAnyBinding(t *testing.T) {
	for major := 5; major <= 7; major++ {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			path := hiptest.Library(t, major)
			assert.Equal(t, path, hiptest.Library(t, major), "built once")
			file, err := elf.Open(path)
			require.NoError(t, err)
			defer file.Close()
			soname, err := file.DynString(elf.DT_SONAME)
			require.NoError(t, err)
			assert.Equal(t, []string{fmt.Sprintf("libamdhip64.so.%d", major)}, soname)
			has := map[string]bool{}
			symbols, err := file.DynamicSymbols()
			require.NoError(t, err)
			for _, s := range symbols {
				has[s.Name] = s.Section != elf.SHN_UNDEF
			}
			assert.True(t, has["hipStreamWaitValue64"])
			assert.True(t, has["softhip_hold"])
			assert.Equal(t, major >= 6, has["hipGetDevicePropertiesR0600"])
			assert.Equal(t, major >= 7, has["hipMemGetHandleForAddressRange"])
			assert.False(t, has["softhip_in_now_ns"])
			child := exec.Command(os.Args[0], "-test.run=^TestInAProcessOfItsOwn$", "-test.v")
			child.Env = append(os.Environ(), libraryVariable+"="+path, "SOFTHIP=devices=2 arch=gfx90a")
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), fmt.Sprintf("ran on HIP %d.", major))
		})
	}
}

func TestInAProcessOfItsOwn(t *testing.T) {
	path := os.Getenv(libraryVariable)
	if path == "" {
		t.Skip("run by TestTheLibraryServesAnyBinding")
	}
	r, err := hipgo.Open(hipgo.Config{Library: path})
	require.NoError(t, err)
	devices, err := r.Devices()
	require.NoError(t, err)
	require.Len(t, devices, 2)
	assert.Equal(t, "gfx90a", devices[1].Arch())
	require.NoError(t, devices[1].SelfTest(within(t, 30*time.Second)))
	m, err := devices[1].LoadModule(mailbox.Image)
	require.NoError(t, err)
	_, err = m.Function("hf_collect")
	require.NoError(t, err)
	require.NoError(t, m.Close())

	// The world in this process's own C is another one.
	w := hiptest.Start(t, hiptest.Settings{})
	require.NoError(t, w.Device(0).SelfTest(within(t, 30*time.Second)))
	require.NoError(t, devices[0].SelfTest(within(t, 30*time.Second)))
	fmt.Println("ran on HIP", r.Version())
}
