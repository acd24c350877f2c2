//go:build linux && cgo

package hipfabric

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const (
	machGfx900 = 0x2c // an arch that the built-in image has no kernels for
	machGfx90a = 0x3f
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
	var out bytes.Buffer
	write := func(v any) { require.NoError(t, binary.Write(&out, binary.LittleEndian, v)) }
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 3}, Type: 3, Machine: 224, Version: 1, Flags: mach,
		Shoff: header + uint64(len(names)) + uint64(len(symbols)*symbol), Ehsize: header, Shentsize: section, Shnum: 3,
	})
	out.Write(names)
	write(symbols)
	write([]elf.Section64{
		{},
		{Type: uint32(elf.SHT_DYNSYM), Off: header + uint64(len(names)), Size: uint64(len(symbols) * symbol), Link: 2, Entsize: symbol},
		{Type: uint32(elf.SHT_STRTAB), Off: header, Size: uint64(len(names))},
	})
	return out.Bytes()
}

func TestAnImageOfTheUsersServesAnArchThatTheBuiltInOneLacks(t *testing.T) {
	for name, settings := range map[string]hiptest.Settings{
		"asked for": {Arch: "gfx900"}, "automatic": {Arch: "gfx900", NoStreamWait: true},
	} {
		t.Run(name, func(t *testing.T) {
			gate := stage.Kernels
			if settings.NoStreamWait {
				gate = stage.Auto
			}
			list := gpus(devices(t, 2, settings), gate)
			for r := range list {
				list[r].Image = codeObject(t, machGfx900, "hf_stage", "hf_collect")
			}
			ranks := staged(t, opened(t, 2, func(c *Config) { c.PartBytes = 4096 }), list)
			for r := range list {
				clear(list[r].Image) // it was copied
				assert.Equal(t, "kernels", ranks[r].Paths()[1].Gate)
			}
			for i, n := range []int{1, 10_000} {
				require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), n, byte(i)) })...))
			}
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}

func TestAnImageThatTheDeviceCannotRunIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		image []byte
		kind  error
		texts []string
	}{
		"no image":            {[]byte("air"), fabric.ErrUnsupported, []string{"gfx900", "an image of 3 bytes", "hipErrorInvalidImage (200)"}},
		"for another arch":    {codeObject(t, machGfx90a, "hf_stage", "hf_collect"), fabric.ErrUnsupported, []string{"gfx900", "hipErrorNoBinaryForGpu (209)"}},
		"without the kernels": {codeObject(t, machGfx900, "hf_stage"), fabric.ErrUnsupported, []string{`kernel "hf_collect"`, "hipErrorNotFound (500)"}},
		"empty":               {[]byte{}, fabric.ErrInvalid, []string{"Image is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := devices(t, 2, hiptest.Settings{Arch: "gfx900"})
			groups := opened(t, 2, nil)
			for _, err := range each(2, func(r int) error {
				gpu := GPU{Device: all[r], Gate: stage.Kernels, Image: codeObject(t, machGfx900, "hf_stage", "hf_collect")}
				if r == 1 {
					gpu.Image = c.image
				}
				_, err := groups[r].Device(t.Context(), gpu)
				return err
			}) {
				assertDeviceError(t, err, c.kind, append(c.texts, "rank 1 could not open its device")...)
			}
			ranks := staged(t, groups, gpus(all, stage.Words))
			require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), 100, 0) })...))
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}
