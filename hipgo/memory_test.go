package hipgo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestMemoryIsKnownByKindInEachNumbering(t *testing.T) {
	for _, hip := range []string{"5.2.21153", "6.2.41134", "7.15.26333"} {
		t.Run(hip, func(t *testing.T) {
			b := start(t, hiptest.Settings{HIP: hip, Devices: 2})
			memory, err := b.World.Device(1).Malloc(1 << 16)
			require.NoError(t, err)
			p, err := b.Runtime().Pointer(memory.Ptr() + 100)
			require.NoError(t, err)
			assert.Equal(t, hipgo.MemoryDevice, p.Kind)
			assert.Equal(t, 1, p.Device)
			assert.Equal(t, memory.Ptr(), p.Base)
			assert.Equal(t, 1<<16, p.Size)
			p, err = b.Runtime().Pointer(b.page.Ptr())
			require.NoError(t, err)
			assert.Equal(t, hipgo.MemoryHost, p.Kind)
			assert.Equal(t, b.page.Ptr(), p.DevicePtr)
			require.NoError(t, memory.Close())
			for _, unknown := range []uintptr{0, 4096, memory.Ptr()} {
				p, err = b.Runtime().Pointer(unknown)
				require.NoError(t, err)
				assert.Equal(t, hipgo.Pointer{}, p)
			}
		})
	}
}

func TestCloseOfMemoryIsOnceAndForAll(t *testing.T) {
	b := start(t, hiptest.Settings{})
	memory, err := b.d.Malloc(64)
	require.NoError(t, err)
	pinned, err := b.d.HostMalloc(100)
	require.NoError(t, err)
	assert.Equal(t, 64, memory.Len())
	assert.Equal(t, 100, pinned.Len())
	assert.Equal(t, 12, pinned.Words().Len(), "without a tail")
	assert.Equal(t, make([]byte, 100), pinned.Bytes())
	assert.Same(t, b.d, memory.Device())

	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipFree", Code: 719}))
	require.ErrorContains(t, memory.Close(), "hipFree: hipErrorLaunchFailure (719)")
	assert.NotZero(t, memory.Ptr(), "it is still ours")
	for range 2 {
		require.NoError(t, memory.Close())
		require.NoError(t, pinned.Close())
	}
	assert.Zero(t, memory.Ptr())
	assert.Zero(t, pinned.Ptr())
	assert.Nil(t, pinned.Bytes())
	assert.Zero(t, pinned.Words().Len())
	require.ErrorContains(t, b.s.Copy(memory.Ptr(), b.page.Ptr(), 8, hipgo.CopyDefault), "hipMemcpyAsync: hipErrorInvalidValue")

	wrapped := b.d.WrapBuffer(b.page.Ptr(), 8)
	assert.Equal(t, b.page.Ptr(), wrapped.Ptr())
	require.NoError(t, wrapped.Close())
	b.words.Store(0, 1) // it was not ours to free
}

func TestSizesAreChecked(t *testing.T) {
	b := start(t, hiptest.Settings{MemoryMB: 16})
	for _, n := range []int{-1, 0} {
		_, err := b.d.Malloc(n)
		assert.ErrorContains(t, err, "at least 1")
		_, err = b.d.HostMalloc(n)
		assert.ErrorContains(t, err, "at least 1")
	}
	_, err := b.d.Malloc(1 << 40)
	require.ErrorContains(t, err, "1099511627776 bytes on device 0")
	assert.ErrorContains(t, err, "hipErrorOutOfMemory (2)")
	assert.ErrorContains(t, b.s.Copy(b.page.Ptr(), b.page.Ptr(), -1, hipgo.CopyDefault), "-1 bytes")
	assert.ErrorContains(t, b.s.Memset(b.page.Ptr(), 0, -1), "-1 bytes")
}

func TestADMABufHasBytes(t *testing.T) {
	b := start(t, hiptest.Settings{})
	for _, n := range []int{0, -1} {
		fd, _, err := b.d.ExportDMABuf(b.page.Ptr(), n)
		require.ErrorContains(t, err, "a dma-buf of", n)
		assert.Equal(t, -1, fd)
	}
}
