//go:build cgo && linux

package hiptest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestTheSelfTestPasses(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	require.NoError(t, w.Device(0).SelfTest(within(t, 10*time.Second)))
}

func TestAHostStoreReleasesAStreamAndItsCopyArrives(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	d := w.Device(0)
	words, err := d.HostMalloc(4096)
	require.NoError(t, err)
	memory, err := d.Malloc(1 << 20)
	require.NoError(t, err)
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	words.Words().Store(8, 0x1122334455667788)
	require.NoError(t, s.WriteWait(words.Words().Addr(0), 7, words.Words().Addr(1), 9))
	require.NoError(t, s.Copy(memory.Ptr(), words.Words().Addr(8), 8, hipgo.CopyDefault))
	require.NoError(t, s.Copy(words.Words().Addr(16), memory.Ptr(), 8, hipgo.CopyDefault))
	require.NoError(t, w.Settle(10*time.Second))
	assert.Equal(t, uint64(7), words.Words().Load(0))
	ready, err := s.Query()
	require.NoError(t, err)
	assert.False(t, ready)
	assert.Contains(t, w.Parked(), ">= 9; it is 0")
	words.Words().Store(1, 10)
	require.NoError(t, s.Synchronize(within(t, 10*time.Second)))
	assert.Equal(t, uint64(0x1122334455667788), words.Words().Load(16))
	require.NoError(t, s.Close())
	require.NoError(t, memory.Close())
	require.NoError(t, words.Close())
}
