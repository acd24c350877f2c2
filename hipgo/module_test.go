package hipgo_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const (
	machGfx1151 = 0x4a
	machGfx90a  = 0x3f
)

// codeObject is an ELF of AMD's with kernels by name and no code: the software device runs their twins.
func codeObject(t *testing.T, mach uint32, kernels ...string) []byte {
	t.Helper()
	names, symbols := []byte{0}, []elf.Sym64{{}}
	for _, k := range kernels {
		symbols = append(symbols, elf.Sym64{Name: uint32(len(names)), Info: 1<<4 | 1, Size: 64})
		names = append(names, k+".kd\x00"...)
	}
	const header, section, symbol = 64, 64, 24
	at := uint64(header)
	var out bytes.Buffer
	write := func(v any) { require.NoError(t, binary.Write(&out, binary.LittleEndian, v)) }
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 3}, Type: 3, Machine: 224, Version: 1, Flags: mach,
		Shoff: at + uint64(len(names)) + uint64(len(symbols)*symbol), Ehsize: header, Shentsize: section, Shnum: 3,
	})
	out.Write(names)
	write(symbols)
	write([]elf.Section64{
		{},
		{Type: uint32(elf.SHT_DYNSYM), Off: at + uint64(len(names)), Size: uint64(len(symbols) * symbol), Link: 2, Entsize: symbol},
		{Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))},
	})
	return out.Bytes()
}

const twins = `
#include <stdint.h>
struct fill { uint64_t *at; uint64_t n, value; };
const unsigned fill_args[] = {sizeof(struct fill), 0};
void fill(const void *args, unsigned blocks, unsigned threads) {
  const struct fill *a = args;
  for (uint64_t i = 0; i < a->n; i++) a->at[i] = a->value * 1000 + blocks * 100 + threads;
}
struct three { uint64_t *at; uint32_t a; uint64_t b; };
const unsigned three_args[] = {8, 4, 8, 0};
void three(const void *args, unsigned blocks, unsigned threads) {
  const struct three *a = args;
  a->at[0] = a->a; a->at[1] = a->b; a->at[2] = blocks; a->at[3] = threads;
}
`

func registerTwins(t *testing.T) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "twins.c"), filepath.Join(dir, "twins.so")
	require.NoError(t, os.WriteFile(source, []byte(twins), 0o644))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", lib, source).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"fill", "three"} {
		require.NoError(t, hiptest.Kernel(name, lib, name))
	}
}

func number(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func TestAKernelIsLoadedAndLaunched(t *testing.T) {
	b := start(t, hiptest.Settings{})
	registerTwins(t)
	image := codeObject(t, machGfx1151, "fill", "three")
	m, err := b.d.LoadModule(image)
	require.NoError(t, err)
	clear(image) // the image was copied
	fill, err := m.Function("fill")
	require.NoError(t, err)
	three, err := m.Function("three")
	require.NoError(t, err)
	assert.NotZero(t, m.Raw())
	assert.NotZero(t, fill.Raw())

	args := append(append(number(uint64(b.words.Addr(0))), number(4)...), number(7)...)
	require.NoError(t, b.s.Launch(fill, [3]int{2, 1, 1}, [3]int{64, 1, 1}, 0, args))
	clear(args) // so were the arguments
	b.drained(t)
	for i := range 4 {
		assert.Equal(t, uint64(7264), b.words.Load(i))
	}
	assert.Zero(t, b.words.Load(4))
	require.NoError(t, b.s.Launch(three, [3]int{3, 2, 1}, [3]int{8, 4, 2}, 16,
		number(uint64(b.words.Addr(0))), []byte{5, 0, 0, 0}, number(6)))
	b.drained(t)
	assert.Equal(t, []uint64{5, 6, 6, 64}, []uint64{b.words.Load(0), b.words.Load(1), b.words.Load(2), b.words.Load(3)})

	for says, err := range map[string]error{
		"a zero Function":       b.s.Launch(hipgo.Function{}, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0),
		"kernel fill: grid":     b.s.Launch(fill, [3]int{1, 0, 1}, [3]int{1, 1, 1}, 0),
		"block [1 1 -1]":        b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, -1}, 0),
		"65 arguments":          b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, make([][]byte, 65)...),
		"4097 bytes of arg":     b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, make([]byte, 4097)),
		"-1 bytes of shared":    b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, 1}, -1),
		"hipModuleLaunchKernel": failing(t, b, fill),
	} {
		assert.ErrorContains(t, err, says)
	}
	_, err = m.Function("absent")
	require.ErrorContains(t, err, `kernel "absent": hipModuleGetFunction: hipErrorNotFound (500)`)
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipModuleUnload", Code: 719}))
	require.Error(t, m.Close())
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Function("fill")
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorIs(t, b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, args), os.ErrClosed)
}

func failing(t *testing.T, b bench, f hipgo.Function) error {
	t.Helper()
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipModuleLaunchKernel", Code: 719}))
	return b.s.Launch(f, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, make([]byte, 24))
}

func TestAnImageForAnotherArchIsRefused(t *testing.T) {
	b := start(t, hiptest.Settings{})
	_, err := b.d.LoadModule(codeObject(t, machGfx90a, "fill"))
	require.ErrorContains(t, err, "hipErrorNoBinaryForGpu (209)")
	assert.ErrorContains(t, err, "gfx1151")
	_, err = b.d.LoadModule([]byte("text"))
	require.ErrorContains(t, err, "hipErrorInvalidImage (200)")
	assert.ErrorContains(t, err, "an image of 4 bytes")
	_, err = b.d.LoadModule(nil)
	require.ErrorContains(t, err, "an empty image")
}

// Whoever loads an image can tell whether another would do.
func TestAnImagesFaultIsNotTheDevices(t *testing.T) {
	b := start(t, hiptest.Settings{})
	registerTwins(t)
	for code, images := range map[int]bool{1: true, 35: true, 200: true, 209: true, 218: true, 300: true, 303: true, 500: true, 801: true, 2: false, 400: false, 719: false, 999: false} {
		for _, call := range []string{"hipModuleLoadData", "hipModuleGetFunction"} {
			require.NoError(t, b.Fail(hiptest.Fault{Call: call, Code: code}))
			_, _, err := b.d.Seam().Load(codeObject(t, machGfx1151, "fill"), "fill")
			var e *hipgo.Error
			require.ErrorAs(t, err, &e, "%s %d", call, code)
			assert.Equal(t, code, e.Code)
			assert.Equal(t, images, errors.Is(err, errors.ErrUnsupported), "%s %d", call, code)
		}
	}
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipMalloc", Code: 500}))
	_, err := b.d.Malloc(64)
	require.Error(t, err)
	assert.NotErrorIs(t, err, errors.ErrUnsupported, "these codes say so of images alone")
}

func TestASeamLaunchesInAGraph(t *testing.T) {
	b := start(t, hiptest.Settings{})
	registerTwins(t)
	seam := b.d.Seam()
	module, functions, err := seam.Load(codeObject(t, machGfx1151, "fill", "three"), "three", "fill")
	require.NoError(t, err)
	require.Len(t, functions, 2)
	require.NoError(t, b.s.BeginCapture(hipgo.CaptureGlobal))
	args := append(append(number(uint64(b.words.Addr(0))), number(1)...), number(3)...)
	require.NoError(t, seam.Launch(b.s.Raw(), functions[1], 4, 32, args))
	graph, err := b.s.EndCapture()
	require.NoError(t, err)
	exec, err := graph.Instantiate()
	require.NoError(t, err)
	b.words.Store(0, 0)
	for range 3 {
		require.NoError(t, exec.Launch(b.s))
	}
	b.drained(t)
	assert.Equal(t, uint64(3432), b.words.Load(0))
	require.NoError(t, exec.Close())
	require.NoError(t, graph.Close())
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = seam.Launch(b.s.Raw(), functions[1], 4, 32, args) }))
	b.drained(t)
	require.NoError(t, seam.Unload(module))
	require.ErrorContains(t, seam.Unload(module), "unloaded already")
	_, _, err = seam.Load(codeObject(t, machGfx1151, "fill"), "fill", "absent")
	require.ErrorContains(t, err, `kernel "absent"`)
}
