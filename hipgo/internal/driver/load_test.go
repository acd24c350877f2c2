//go:build cgo && linux

package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a process has loaded it never loses, so each scenario has a process of its own: this test binary again.
const scenarioVariable = "HIPGO_LOAD_SCENARIO"

func fake(t *testing.T, dir string, major, version, code int, flags ...string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	soname := fmt.Sprintf("libamdhip64.so.%d", major)
	lib := filepath.Join(dir, soname)
	args := append([]string{
		"-shared", "-fPIC", "-o", lib, "-Wl,-soname," + soname, "-I../../../csrc/hipshim",
		fmt.Sprintf("-DVERSION=%d", version), fmt.Sprintf("-DCODE=%d", code), "testdata/fake.c",
	}, flags...)
	out, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return lib
}

func TestLoading(t *testing.T) {
	if os.Getenv(scenarioVariable) != "" {
		t.Skip("in a scenario")
	}
	dir := t.TempDir()
	fake(t, dir, 7, 71526333, 0)
	fake(t, dir, 6, 60241134, 0)
	fake(t, filepath.Join(dir, "other"), 7, 70204000, 0)
	fake(t, filepath.Join(dir, "old"), 4, 40421401, 0)
	fake(t, filepath.Join(dir, "refusing"), 7, 70204000, 35)
	fake(t, filepath.Join(dir, "short"), 7, 70204000, 0, "-DhipStreamWaitValue64=elsewhere")
	require.NoError(t, os.Symlink("libamdhip64.so.7", filepath.Join(dir, "linked.so")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text.so"), []byte("no library\n"), 0o644))
	exe, err := os.Executable()
	require.NoError(t, err)
	for name := range scenarios {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(exe, "-test.run=^TestLoadScenario$", "-test.v")
			cmd.Env = append(os.Environ(), scenarioVariable+"="+name, "HIPGO_LOAD_DIR="+dir, "LD_LIBRARY_PATH="+dir)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, string(out)+stderr.String())
			if strings.Contains(string(out), "--- SKIP") {
				t.Skip(string(out))
			}
			assert.Empty(t, stderr.String(), "a runtime is silent")
		})
	}
}

func TestLoadScenario(t *testing.T) {
	run, ok := scenarios[os.Getenv(scenarioVariable)]
	if !ok {
		t.Skip("only in a process of its own")
	}
	run(t, os.Getenv("HIPGO_LOAD_DIR"))
}

var scenarios = map[string]func(t *testing.T, dir string){
	"the newest is found":                findsTheNewest,
	"a resident one is shared":           sharesTheResident,
	"an engine's handle is adopted":      adopts,
	"what is no handle is refused":       refusesWhatIsNoHandle,
	"a second one is refused":            refusesASecond,
	"two residents are refused":          refusesTwo,
	"a link to the same is the same":     knowsALink,
	"an absent file is refused":          refuses("absent.so", "No such file"),
	"a text is refused":                  refuses("text.so", "file too short"),
	"a missing symbol is named":          refuses("short/libamdhip64.so.7", "lacks hipStreamWaitValue64"),
	"an old runtime is refused":          refuses("old/libamdhip64.so.4", "it is HIP 4.4; 5.2 or newer is needed"),
	"one without a version is refused":   refuses("refusing/libamdhip64.so.7", "hipRuntimeGetVersion: code 35"),
	"where there is none it says so":     saysThatThereIsNone,
	"the real one without a GPU is mute": meetsTheRealOne,
}

func findsTheNewest(t *testing.T, dir string) {
	table, err := Load("")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "libamdhip64.so.7"), table.Library())
	assert.Equal(t, 71526333, table.Version())
	again, err := Load("")
	require.NoError(t, err)
	assert.Equal(t, table.c, again.c, "one table a library")
}

func sharesTheResident(t *testing.T, dir string) {
	six := filepath.Join(dir, "libamdhip64.so.6")
	h, why := open(six, false)
	require.NotZero(t, h, why)
	table, err := Load("")
	require.NoError(t, err)
	assert.Equal(t, six, table.Library())
}

func adopts(t *testing.T, dir string) {
	other := filepath.Join(dir, "other", "libamdhip64.so.7")
	h, why := open(other, false)
	require.NotZero(t, h, why)
	table, err := Adopt(h)
	require.NoError(t, err)
	assert.Equal(t, other, table.Library())

	libc, why := open("libc.so.6", true)
	require.NotZero(t, libc, why)
	_, err = Adopt(libc)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, "is no HIP runtime")
}

func refusesWhatIsNoHandle(t *testing.T, dir string) {
	h, why := open(filepath.Join(dir, "libamdhip64.so.7"), false)
	require.NotZero(t, h, why)
	words := make([]uintptr, 64)
	for _, bad := range []uintptr{1, 8, 0xdead_beef, uintptr(unsafe.Pointer(&words[0])), h + 8, h - 1, ^uintptr(0)} {
		_, err := Adopt(bad)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, fmt.Sprintf("the handle %#x is none that dlopen has given", bad))
		_, _, _, err = AdoptCUDA(bad)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, fmt.Sprintf("the handle %#x is none that dlopen has given", bad))
		assert.Empty(t, where(bad))
		assert.Empty(t, cudaWhere(bad))
	}
	_, err := Adopt(0)
	require.ErrorContains(t, err, "the handle is 0")
	_, _, _, err = AdoptCUDA(0)
	require.ErrorContains(t, err, "the handle is 0")

	var opening sync.WaitGroup // while the list of libraries changes
	for _, name := range []string{"libresolv.so.2", "libutil.so.1", "libnsl.so.1", "libanl.so.1", "libpthread.so.0"} {
		opening.Go(func() { open(name, false) })
	}
	for range 1000 {
		require.True(t, given(h))
		require.False(t, given(h+8))
	}
	opening.Wait()
	_, err = Adopt(h)
	require.NoError(t, err)
}

func refusesASecond(t *testing.T, dir string) {
	seven, six := filepath.Join(dir, "libamdhip64.so.7"), filepath.Join(dir, "libamdhip64.so.6")
	_, err := Load(seven)
	require.NoError(t, err)
	for _, second := range []string{six, "libamdhip64.so.6", filepath.Join(dir, "other", "libamdhip64.so.7")} {
		_, err = Load(second)
		require.ErrorIs(t, err, ErrSecond, second)
		assert.ErrorContains(t, err, second)
		assert.ErrorContains(t, err, seven)
		assert.ErrorIs(t, err, errors.ErrUnsupported)
	}
	h, _ := open("libamdhip64.so.6", true)
	assert.Zero(t, h, "what is refused is not loaded")
	_, err = Load(seven)
	require.NoError(t, err)
}

func refusesTwo(t *testing.T, dir string) {
	seven, _ := open(filepath.Join(dir, "libamdhip64.so.7"), false)
	six, _ := open(filepath.Join(dir, "libamdhip64.so.6"), false)
	_, err := Load("")
	require.ErrorIs(t, err, ErrSecond)
	for _, h := range []uintptr{six, seven} {
		_, err := Adopt(h)
		require.ErrorIs(t, err, ErrSecond)
		assert.ErrorContains(t, err, "libamdhip64.so.6")
		assert.ErrorContains(t, err, "libamdhip64.so.7")
	}
}

func knowsALink(t *testing.T, dir string) {
	table, err := Load(filepath.Join(dir, "libamdhip64.so.7"))
	require.NoError(t, err)
	for _, same := range []string{filepath.Join(dir, "linked.so"), "libamdhip64.so.7"} {
		again, err := Load(same)
		require.NoError(t, err, same)
		assert.Equal(t, table.c, again.c)
	}
}

func refuses(file, says string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, file)
		_, err := Load(path)
		assertRefused(t, err, path, says)
	}
}

func assertRefused(t *testing.T, err error, path, says string) {
	t.Helper()
	var load *LoadError
	require.ErrorAs(t, err, &load)
	assert.Equal(t, path, load.Library)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, path)
	assert.ErrorContains(t, err, says)
}

func saysThatThereIsNone(t *testing.T, dir string) {
	_, err := search([]string{"/nowhere/libamdhip64.so.7", "libamdhip64.so.77"})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, "/nowhere/libamdhip64.so.7, libamdhip64.so.77")

	broken := filepath.Join(dir, "text.so")
	_, err = search([]string{"/nowhere/libamdhip64.so.7", broken})
	assertRefused(t, err, broken, "file too short")
}

// meetsTheRealOne calls every entry point that takes no handle of a device that is not there.
func meetsTheRealOne(t *testing.T, _ string) {
	h, _ := open("libamdhip64.so.5", false)
	if h == 0 {
		t.Skip("no libamdhip64.so.5 is installed")
	}
	if _, err := os.Stat("/dev/kfd"); !errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is a GPU, perhaps")
	}
	table, err := Load("")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, table.Version(), oldest)
	assert.Contains(t, table.Library(), "libamdhip64.so.5")
	codes := map[string]int{}
	_, codes["count"] = table.Count()
	_, codes["attribute"] = table.Attribute(0, 16)
	_, codes["name"] = table.Name(0)
	_, codes["pci"] = table.PCI(0)
	_, codes["arch"] = table.Arch(0)
	_, _, codes["memory"] = table.Memory(0)
	_, _, codes["priority"] = table.PriorityRange(0)
	_, codes["malloc"] = table.Malloc(0, 64)
	_, _, codes["host malloc"] = table.HostMalloc(0, 64)
	_, codes["pointer"] = table.Pointer(0, 4096)
	_, codes["stream"] = table.StreamCreate(0, 1)
	_, codes["priority stream"] = table.StreamCreatePriority(0, 1, 0)
	_, codes["mask stream"] = table.StreamCreateMask(0, []uint32{1})
	codes["query"] = table.StreamQuery(0, 0)
	_, codes["capturing"] = table.StreamCapturing(0, 0)
	codes["copy"] = table.Copy(0, 0, 4096, 8192, 8, 4)
	codes["memset"] = table.Memset(0, 0, 4096, 0, 8)
	codes["wait64"] = table.Wait64(0, 0, 4096, 1, 0, ^uint64(0))
	codes["wait32"] = table.Wait32(0, 0, 4096, 1, 0, ^uint32(0))
	codes["write64"] = table.Write64(0, 0, 4096, 1)
	codes["write32"] = table.Write32(0, 0, 4096, 1)
	_, codes["write+wait"] = table.WriteWait(0, 0, 4096, 1, 4104, 1, false)
	_, codes["event"] = table.EventCreate(0, 2)
	codes["begin capture"] = table.BeginCapture(0, 0, 0)
	_, _, codes["module"] = table.ModuleLoad(0, []byte("no image"))
	for call, code := range codes {
		assert.Contains(t, []int{100, 101}, code, call)
	}
}
