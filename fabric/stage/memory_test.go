package stage_test

import (
	"sync"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// registered is a rank whose buffers are the path's own.
func registered(r *rank) fabrictest.Subject {
	var held sync.Map
	d := r.d
	return fabrictest.Stream(r.StreamCollective, fabrictest.Device{
		Stream: r.s,
		Alloc: func(n int) (fabric.DevPtr, error) {
			m, err := r.path.Alloc(n)
			if err != nil { // the group has ended, and another rank's call has said so first
				return fabric.DevPtr(d.alloc(n, false).at), nil
			}
			held.Store(m.Device(), m)
			return m.Device(), nil
		},
		Free: func(p fabric.DevPtr) error {
			m, ok := held.LoadAndDelete(p)
			if !ok {
				return d.release(uintptr(p))
			}
			return m.(fabric.DeviceMemory).Close()
		},
		Upload: func(dst fabric.DevPtr, src []byte) error {
			_, b := d.bytes(uintptr(dst), len(src))
			return copied(b, src)
		},
		Download: func(dst []byte, src fabric.DevPtr) error {
			_, b := d.bytes(uintptr(src), len(dst))
			return copied(dst, b)
		},
		Synchronize: r.synchronize,
		Hold:        func() (func(), error) { return d.hold(uintptr(r.s)), nil },
	})
}

// On a device that shares its memory with the CPU, calls on registered memory make no copy on the device, and keep the
// contract.
func TestContractInPlace(t *testing.T) {
	for _, partBytes := range []int{64, stage.DefaultPartBytes} {
		if underRace && partBytes > 64 {
			continue
		}
		fabrictest.RunPairwise(t, func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
			partBytes := partBytes
			if !small(o.Group) {
				partBytes = max(partBytes, 64<<10)
			}
			ranks := openRanks(t, world, func(_ int, c *stage.Config, d *double) {
				d.integrated = true
				c.PartBytes, c.Group, c.Timeout = partBytes, o.Group, o.Timeout
			})
			subjects := make([]fabrictest.Subject, world)
			for r := range subjects {
				subjects[r] = registered(ranks[r])
				t.Cleanup(func() { assert.Zero(t, ranks[r].d.calls["Copy"], "rank %d", r) })
			}
			return subjects
		})
	}
}

// Memory that nobody registered is never touched by the CPU, and registered memory only where the device shares it.
func TestOnlyRegisteredMemoryOfASharedDeviceIsUsedInPlace(t *testing.T) {
	for _, integrated := range []bool{false, true} {
		ranks := openRanks(t, 2, func(_ int, _ *stage.Config, d *double) { d.integrated = integrated })
		n := 100
		var outs [2][]byte
		for i, r := range ranks {
			own, err := r.Alloc(n)
			require.NoError(t, err)
			defer func() { assert.NoError(t, own.Close()) }()
			require.NotNil(t, own.Bytes())
			copy(own.Bytes(), pattern(i, n))
			var out fabric.DevPtr
			out, outs[i] = r.memory(make([]byte, 2*n))
			require.NoError(t, r.AllGather(r.s, out, own.Device(), n))
		}
		for i, r := range ranks {
			r.wait(t)
			assert.Equal(t, append(pattern(0, n), pattern(1, n)...), outs[i])
			r.d.mu.Lock()
			assert.Equal(t, map[bool]int{true: 1, false: 2}[integrated], r.d.calls["Copy"], "up only, where down is in place")
			r.d.mu.Unlock()
		}
	}
}

func TestPinnedMemoryOfTheEnginesIsRegistered(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Integrated: true})
	ranks := openHIP(t, w, 1, stage.Config{}, nil)
	r := ranks[0]
	pinned, err := r.d.HostMalloc(4096)
	require.NoError(t, err)
	m, err := r.Register(pinned.Bytes(), fabric.DevPtr(pinned.Ptr()))
	require.NoError(t, err)
	copy(pinned.Bytes(), pattern(0, 1000))
	require.NoError(t, r.AllGather(r.stream(), fabric.DevPtr(pinned.Ptr())+2048, fabric.DevPtr(pinned.Ptr()), 1000))
	require.NoError(t, r.Wait(t.Context(), r.stream()))
	assert.Equal(t, pattern(0, 1000), pinned.Bytes()[2048:3048])
	for _, op := range w.Trace() {
		assert.NotContains(t, op.Name, "Memcpy")
	}
	device, err := r.d.Malloc(100)
	require.NoError(t, err)
	_, err = r.Register(make([]byte, 100), fabric.DevPtr(device.Ptr()))
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "it is device memory")
	_, err = r.Register(make([]byte, 100), 0x1234)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.NoError(t, m.Close())
	require.NoError(t, device.Close())
	require.NoError(t, pinned.Close())
	done(t, ranks)
}

func TestAllocIsTheDevicesOwnWhereTheCPUCannotShare(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ranks := openHIP(t, w, 1, stage.Config{}, nil)
	m, err := ranks[0].Alloc(100)
	require.NoError(t, err)
	assert.Nil(t, m.Bytes())
	assert.Equal(t, 100, m.Len())
	require.NoError(t, ranks[0].AllReduce(ranks[0].stream(), m.Device(), m.Device(), 100, fabric.U8, fabric.Sum))
	require.NoError(t, ranks[0].Wait(t.Context(), ranks[0].stream()))
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	done(t, ranks)
}

func TestThePathsOwnMemoryIsKnownUntilItIsClosed(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ranks := openHIP(t, w, 1, stage.Config{}, nil)
	r := ranks[0]
	m, err := r.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, w.Fail(hiptest.Fault{Call: "hipPointerGetAttributes", Nth: 1, Code: 999}))
	require.NoError(t, r.Broadcast(r.stream(), m.Device()+20, 80, 0), "the device is not asked")
	require.NoError(t, r.Wait(t.Context(), r.stream()))
	require.Error(t, r.Broadcast(r.stream(), m.Device()+20, 81, 0), "it is, for a byte more")
	require.NoError(t, m.Close())
	done(t, ranks)
}

func TestMemoryThatWasClosedIsRefused(t *testing.T) {
	ranks := openHIP(t, hiptest.Start(t, hiptest.Settings{}), 1, stage.Config{}, nil)
	r := ranks[0]
	m, err := r.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.ErrorIs(t, r.Broadcast(r.stream(), m.Device(), 100, 0), fabric.ErrInvalid)
	done(t, ranks)
}
