package mailbox_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
)

// targets are the GPUs that the image is for, with the machine number that ELF has for each.
var targets = map[string]uint32{"gfx90a": 0x3f, "gfx942": 0x4c, "gfx1030": 0x36, "gfx1100": 0x41, "gfx1151": 0x4a, "gfx1201": 0x4e}

// kernels are what the image has, with the bytes of a block's own memory and of the arguments of each.
var kernels = map[string][2]uint32{
	"hf_stage": {8, 120}, "hf_collect": {8, 120}, "hf_gather": {32, 88}, "hf_all_reduce": {32, 88}, "hf_exchange": {32, 88},
}

// objects unpacks a bundle: code by target.
func objects(t *testing.T, image []byte) map[string][]byte {
	rest, ok := bytes.CutPrefix(image, []byte("__CLANG_OFFLOAD_BUNDLE__"))
	require.True(t, ok, "not a bundle")
	number := func() uint64 {
		require.GreaterOrEqual(t, len(rest), 8)
		n := binary.LittleEndian.Uint64(rest)
		rest = rest[8:]
		return n
	}
	found := map[string][]byte{}
	for range number() {
		at, size, name := number(), number(), number()
		require.LessOrEqual(t, name, uint64(len(rest)))
		id := string(rest[:name])
		rest = rest[name:]
		require.LessOrEqual(t, at+size, uint64(len(image)))
		if arch, ok := strings.CutPrefix(id, "hipv4-amdgcn-amd-amdhsa--"); ok {
			assert.Zero(t, at%4096, "%s lies where the loader can map it", id)
			found[arch] = image[at:][:size]
		} else {
			assert.Equal(t, "host-x86_64-unknown-linux--", id)
			assert.Zero(t, size)
		}
	}
	return found
}

// loadable fails unless image holds all kernels, in code that a loader takes, for each target and no other.
func loadable(t *testing.T, image []byte) {
	found := objects(t, image)
	assert.Len(t, found, len(targets))
	for arch, machine := range targets {
		code, ok := found[arch]
		require.True(t, ok, "no code for %s", arch)
		f, err := elf.NewFile(bytes.NewReader(code))
		require.NoError(t, err, arch)
		assert.Equal(t, elf.Machine(224), f.Machine, "%s: EM_AMDGPU", arch)
		assert.Equal(t, byte(64), code[elf.EI_OSABI], "%s: HSA", arch)
		assert.Equal(t, byte(3), f.ABIVersion, "%s: code object version 5", arch)
		assert.Equal(t, machine, binary.LittleEndian.Uint32(code[48:])&0xff, "%s: e_flags", arch)
		symbols, err := f.DynamicSymbols()
		require.NoError(t, err, arch)
		var names []string
		for _, s := range symbols {
			names = append(names, s.Name)
		}
		for name := range kernels {
			assert.Subset(t, names, []string{name, name + ".kd"}, arch)
		}
		for _, s := range symbols {
			name, ok := strings.CutSuffix(s.Name, ".kd")
			if !ok {
				continue
			}
			kd := descriptor(t, f, s)
			assert.Equal(t, kernels[name][0], kd[0], "%s %s: bytes of a block's own memory", arch, name)
			assert.Equal(t, uint32(0), kd[1], "%s %s: bytes of scratch", arch, name)
			assert.Equal(t, kernels[name][1], kd[2], "%s %s: bytes of arguments, none hidden", arch, name)
			assert.Equal(t, uint32(0xf0), kd[12]>>12&0xff, "%s %s: rounds to nearest even, keeps subnormals", arch, name)
		}
	}
}

// descriptor reads a kernel's descriptor by words.
func descriptor(t *testing.T, f *elf.File, s elf.Symbol) [16]uint32 {
	section := f.Sections[s.Section]
	data, err := section.Data()
	require.NoError(t, err)
	var kd [16]uint32
	for i := range kd {
		kd[i] = binary.LittleEndian.Uint32(data[s.Value-section.Addr+uint64(4*i):])
	}
	return kd
}

func TestTheImageHasTheKernelsForEachTarget(t *testing.T) {
	loadable(t, mailbox.Image)
}

// assembles says of PTX what can be seen without NVIDIA's assembler; where there is one, it has its word too.
func assembles(t *testing.T, ptx []byte) {
	text := string(ptx)
	assert.Contains(t, text, "\n.version 6.3\n.target sm_70\n.address_size 64\n")
	for kernel, bytes := range kernels {
		assert.Contains(t, text, fmt.Sprintf(".visible .entry %s(\n\t.param .align 8 .b8 %s_param_0[%d]\n)", kernel, kernel, bytes[1]))
	}
	assert.NotRegexp(t, `\.ftz|\bfma\.|\.approx`, text, "sums are the host's, bit for bit")
	for _, order := range []string{"ld.relaxed.sys.global.u64", "st.release.sys.global.u64", "fence.acq_rel.sys;", "atom.acq_rel.gpu.global.add.u64", "bar.sync"} {
		assert.Contains(t, text, order)
	}
	assert.NotContains(t, text, ".extern", "nothing is left to link")
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Log("no ptxas here: that it assembles is for the driver to say")
		return
	}
	file := filepath.Join(t.TempDir(), "mailbox.ptx")
	require.NoError(t, os.WriteFile(file, ptx, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, ptxas, "-arch=sm_70", "-o", file+".cubin", file).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func TestThePTXHasTheKernels(t *testing.T) {
	assembles(t, mailbox.PTX)
}

// What is committed is what the recipe makes of the sources beside it.
func TestTheImageIsWhatTheRecipeMakes(t *testing.T) {
	if _, err := exec.LookPath("clang++-19"); err != nil {
		t.Skip("no clang++-19 here; on Debian: apt-get install clang-19 lld-19")
	}
	recorded, err := os.ReadFile("mailbox.built")
	require.NoError(t, err)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "../../build/kernels.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return b
	}
	compiler := regexp.MustCompile(`(?m)\A.*$`)
	ours, theirs := compiler.FindString(string(recorded)), compiler.FindString(string(read("mailbox.built")))
	if ours != theirs {
		t.Logf("committed is what %q made; here is %q: what it makes loads, and need not be the same bytes", ours, theirs)
		loadable(t, read("mailbox.hipfb"))
		assembles(t, read("mailbox.ptx"))
		return
	}
	assert.True(t, bytes.Equal(read("mailbox.hipfb"), mailbox.Image), "mailbox.hipfb is not what its sources make: run build/kernels.sh and commit what it wrote")
	assert.True(t, bytes.Equal(read("mailbox.ptx"), mailbox.PTX), "mailbox.ptx is not what its sources make: run build/kernels.sh and commit what it wrote")
	assert.Equal(t, string(recorded), string(read("mailbox.built")))
}
