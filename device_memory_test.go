//go:build linux && cgo

package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// copies counts what a device copied by Memcpy, of all that it did.
func copies(w *hiptest.World) (n int) {
	for _, op := range w.Trace() {
		if strings.Contains(op.Name, "Memcpy") {
			n++
		}
	}
	return n
}

// gatherPinned gathers bytes of each rank's number plus shift from pinned memory to pinned memory.
func (r *rank) gatherPinned(ctx context.Context, host []byte, at fabric.DevPtr, bytes int, shift byte) error {
	world := r.World()
	clear(host)
	want := make([]byte, 0, bytes*world)
	for from := range world {
		for i := range bytes {
			want = append(want, byte(from)+shift+byte(i))
		}
	}
	copy(host, want[bytes*r.Rank():][:bytes])
	if err := errors.Join(r.calls.AllGather(r.raw(), at+fabric.DevPtr(bytes), at, bytes), r.calls.Wait(ctx, r.raw())); err != nil {
		return err
	}
	if !slices.Equal(want, host[bytes:][:bytes*world]) {
		return fmt.Errorf("rank %d has other bytes than were sent", r.Rank())
	}
	return nil
}

// An engine's own pinned memory goes over the wire as it is where the device shares its memory with the CPU, while it is registered.
func TestRegisteredMemoryIsUsedInPlaceOnASharedDevice(t *testing.T) {
	for _, integrated := range []bool{true, false} {
		t.Run(fmt.Sprintf("integrated %v", integrated), func(t *testing.T) {
			const bytes = 10_000
			w := hiptest.Start(t, hiptest.Settings{Devices: 2, Integrated: integrated})
			ranks := staged(t, opened(t, 2, func(c *Config) { c.PartBytes = 4096 }), []GPU{{Device: w.Device(0), Gate: stage.Words}, {Device: w.Device(1), Gate: stage.Words}})
			began := copies(w)
			closed := make([]int, 2)
			require.NoError(t, errors.Join(each(2, func(r int) error {
				rank := ranks[r]
				host, err := rank.device.HostMalloc(3 * bytes)
				if err != nil {
					return err
				}
				at := fabric.DevPtr(host.Ptr())
				memory, err := rank.calls.Register(host.Bytes(), at)
				if err != nil {
					return err
				}
				assert.Equal(t, []any{at, 3 * bytes}, []any{memory.Device(), memory.Len()})
				err = errors.Join(rank.gatherPinned(t.Context(), host.Bytes(), at, bytes, 1), rank.Control().Barrier(t.Context()))
				closed[r] = copies(w)
				return errors.Join(err, rank.Control().Barrier(t.Context()), memory.Close(),
					rank.gatherPinned(t.Context(), host.Bytes(), at, bytes, 2), host.Close())
			})...))
			if integrated {
				assert.Equal(t, []int{began, began}, closed, "no copy while it is registered")
			} else {
				assert.Greater(t, closed[0], began, "the CPU leaves a discrete device's memory alone")
			}
			assert.Greater(t, copies(w), closed[0], "none of it is in place once it is not registered")
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}

func TestMemoryThatIsNotPinnedIsNotRegistered(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Integrated: true})
	ranks := staged(t, opened(t, 1, nil), []GPU{{Device: w.Device(0), Gate: stage.Words}})
	r := ranks[0]
	device, err := r.device.Malloc(100)
	require.NoError(t, err)
	pinned, err := r.device.HostMalloc(100)
	require.NoError(t, err)
	heap := make([]byte, 1<<20)
	for _, bad := range []struct {
		at   uintptr
		n    int
		text string
	}{
		{device.Ptr(), 100, "100 bytes at "}, {device.Ptr(), 100, "it is device memory"},
		{pinned.Ptr(), len(heap), "are no pinned memory of gfx1151"}, {0x1234, 100, "100 bytes at 0x1234 are no pinned memory"},
		{pinned.Ptr(), 0, "0 bytes at "}, {0, 100, "100 bytes at 0x0"},
	} {
		_, err := r.calls.Register(heap[:bad.n], fabric.DevPtr(bad.at))
		require.ErrorIs(t, err, fabric.ErrInvalid, bad.text)
		var op *fabric.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "register", op.Op)
		assert.ErrorContains(t, err, bad.text)
	}
	at := pinned.Ptr()
	require.NoError(t, pinned.Close())
	_, err = r.calls.Register(heap[:100], fabric.DevPtr(at))
	require.ErrorIs(t, err, fabric.ErrInvalid, "it is freed")
	require.NoError(t, r.calls.Barrier(r.raw()), "the group goes on")
	require.NoError(t, r.calls.Wait(t.Context(), r.raw()))
	require.NoError(t, device.Close())
	require.NoError(t, errors.Join(closeRanks(ranks)...))
}
