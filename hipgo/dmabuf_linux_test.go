package hipgo_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// Whoever maps the buffer at the offset has the device's bytes before it, and the device has its.
func TestADMABufHoldsTheDevicesBytesAtItsOffset(t *testing.T) {
	b := start(t, hiptest.Settings{})
	const whole, part, at = 1 << 16, 4096, 3 * 4096
	memory, err := b.d.Malloc(whole)
	require.NoError(t, err)
	require.True(t, b.Runtime().Has(hipgo.FeatureDMABuf))
	for i := range whole / part {
		require.NoError(t, b.s.Memset(memory.Ptr()+uintptr(i*part), byte(i+1), part))
	}
	b.drained(t)
	for _, from := range []int{0, at, at + 8} {
		fd, offset, err := b.d.ExportDMABuf(memory.Ptr()+uintptr(from), part)
		require.NoError(t, err)
		mapped, err := unix.Mmap(fd, 0, int(offset)+part, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd), "the mapping outlives the descriptor")
		require.NoError(t, b.s.Copy(b.page.Ptr(), memory.Ptr()+uintptr(from), part, hipgo.CopyDefault))
		b.drained(t)
		assert.True(t, bytes.Equal(b.page.Bytes(), mapped[offset:]), "%d bytes in", from)
		mapped[offset] = 0x5a
		require.NoError(t, b.s.Copy(b.page.Ptr(), memory.Ptr()+uintptr(from), 8, hipgo.CopyDefault))
		b.drained(t)
		assert.Equal(t, byte(0x5a), b.page.Bytes()[0], "%d bytes in", from)
		require.NoError(t, unix.Munmap(mapped))
	}
	past, _, err := b.d.ExportDMABuf(memory.Ptr(), whole+1)
	require.ErrorContains(t, err, "a dma-buf of 65537 bytes")
	assert.Equal(t, -1, past)
	require.NoError(t, memory.Close())
	_, _, err = b.d.ExportDMABuf(b.page.Ptr(), part)
	require.ErrorContains(t, err, "hipErrorInvalidValue", "pinned memory is no device's")
}

func TestADMABufNeedsAWayAndAnOffset(t *testing.T) {
	for _, missing := range []string{"hipMemGetHandleForAddressRange", "hipMemGetAddressRange"} {
		b := start(t, hiptest.Settings{Missing: []string{missing}})
		assert.False(t, b.Runtime().Has(hipgo.FeatureDMABuf), missing)
		_, _, err := b.d.ExportDMABuf(b.page.Ptr(), 8)
		var lacks *hipgo.UnsupportedError
		require.ErrorAs(t, err, &lacks, missing)
		assert.ErrorContains(t, err, b.d.String())
		require.NoError(t, b.s.Close())
		require.NoError(t, b.page.Close())
		require.NoError(t, b.World.Close())
	}
}
