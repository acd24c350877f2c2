//go:build cgo && linux

package hiptest_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// image is a code object for gfx1151 that has one kernel: headers and a symbol, no code.
func image(kernel string) []byte {
	le := binary.LittleEndian
	b := make([]byte, 2048)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], 224)        // e_machine: AMDGPU
	le.PutUint64(b[40:], 1024)       // e_shoff
	le.PutUint32(b[48:], 0x500|0x4a) // e_flags: gfx1151
	le.PutUint16(b[58:], 64)         // e_shentsize
	le.PutUint16(b[60:], 3)          // e_shnum
	names := "\x00" + kernel + ".kd\x00"
	copy(b[512:], names)
	le.PutUint32(b[256+24:], 1) // the second symbol's name
	section := func(i int, kind uint32, offset, size, entry uint64, link uint32) {
		at := b[1024+64*i:]
		le.PutUint32(at[4:], kind)
		le.PutUint64(at[24:], offset)
		le.PutUint64(at[32:], size)
		le.PutUint32(at[40:], link)
		le.PutUint64(at[56:], entry)
	}
	section(1, 11, 256, 48, 24, 2) // SHT_DYNSYM
	section(2, 3, 512, uint64(len(names)), 0, 0)
	return b
}

const twins = `
#include <stdint.h>
void (*softhip_pause_hook)(void);
struct args { uint64_t *in, *out, *go; uint32_t n; };
const unsigned scale__host_args[] = {sizeof(struct args), 0};
void scale__host(const void *p, unsigned blocks, unsigned threads) {
  const struct args *a = p;
  while (a->go && __atomic_load_n(a->go, __ATOMIC_ACQUIRE) == 0) softhip_pause_hook();
  for (uint32_t i = 0; i < a->n; i++) a->out[i] = a->in[i] * blocks + threads;
}
void sizeless(const void *p, unsigned blocks, unsigned threads) { (void)p; (void)blocks; (void)threads; }
`

func twinLibrary(t *testing.T) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	source, so := filepath.Join(dir, "twins.c"), filepath.Join(dir, "twins.so")
	require.NoError(t, os.WriteFile(source, []byte(twins), 0o600))
	out, err := exec.Command(cc, "-O2", "-fPIC", "-shared", "-o", so, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return so
}

func scaleArgs(in, out, wait uintptr, n uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(in))
	b = binary.LittleEndian.AppendUint64(b, uint64(out))
	b = binary.LittleEndian.AppendUint64(b, uint64(wait))
	b = binary.LittleEndian.AppendUint32(b, n)
	return append(b, 0, 0, 0, 0)
}

func TestAnEnginesKernelRunsAsItsTwin(t *testing.T) {
	so := twinLibrary(t)
	for _, integrated := range []bool{false, true} { // a World is closed before the next begins
		w := hiptest.Start(t, hiptest.Settings{Integrated: integrated})
		d := w.Device(0)
		require.NoError(t, w.Kernel("scale", so, "scale__host"))
		m, err := d.LoadModule(image("scale"))
		require.NoError(t, err)
		f, err := m.Function("scale")
		require.NoError(t, err)
		_, err = m.Function("shrink")
		assert.Equal(t, 500, code(t, err))
		host, err := d.HostMalloc(4096)
		require.NoError(t, err)
		memory, err := d.Malloc(4096)
		require.NoError(t, err)
		s, err := d.NewStream(hipgo.StreamNonBlocking)
		require.NoError(t, err)
		words := host.Words()
		for i := range 10 {
			words.Store(i, uint64(i))
		}
		// Up into device memory, which the twin can touch and the host cannot, once the host says go; and down again.
		require.NoError(t, s.Launch(f, [3]int{3, 1, 1}, [3]int{64, 1, 1}, 0, scaleArgs(host.Ptr(), memory.Ptr(), words.Addr(100), 10)))
		require.NoError(t, s.Copy(words.Addr(20), memory.Ptr(), 80, hipgo.CopyDefault))
		settle(t, w)
		assert.Contains(t, w.Parked(), "scale of stream")
		assert.Contains(t, w.Parked(), "is a kernel that waits; 1 behind it")
		words.Store(100, 1)
		sync(t, s)
		for i := range 10 {
			assert.Equal(t, uint64(3*i+64), words.Load(20+i))
		}
		require.NoError(t, m.Close())
		require.NoError(t, s.Close())
		require.NoError(t, memory.Close())
		require.NoError(t, host.Close())
		require.Error(t, w.Kernel("scale", so, "nothing"))
		require.Error(t, w.Kernel("scale", so+"x", "scale__host"))
		require.NoError(t, w.Close())
	}
}

func TestAnImageForAnotherArchIsRefused(t *testing.T) {
	for arch, known := range map[string]bool{
		"gfx90a": true, "gfx942": true, "gfx1030": true, "gfx1100": true, "gfx1151": true, "gfx1201": true, "gfx906": false, "gfx1152": false,
	} {
		t.Run(arch, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Arch: arch})
			m, err := w.Device(0).LoadModule(mailbox.Image)
			if !known {
				assert.Equal(t, 209, code(t, err))
				return
			}
			require.NoError(t, err)
			for _, name := range []string{"hf_stage", "hf_collect"} {
				_, err = m.Function(name)
				require.NoError(t, err)
			}
			require.NoError(t, m.Close())
			if arch != "gfx1151" {
				_, err = w.Device(0).LoadModule(image("scale"))
				assert.Equal(t, 209, code(t, err))
			}
		})
	}
}
