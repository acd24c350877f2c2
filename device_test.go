//go:build linux && cgo

package hipfabric

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// devices are world software devices.
func devices(t *testing.T, world int, settings hiptest.Settings) []*hipgo.Device {
	t.Helper()
	settings.Devices = world
	w := hiptest.Start(t, settings)
	all := make([]*hipgo.Device, world)
	for r := range all {
		all[r] = w.Device(r)
	}
	return all
}

// rank is one rank's group with calls on device memory.
type rank struct {
	*Group
	device *hipgo.Device
	calls  *fabric.StreamCollective
	stream hipgo.Stream
}

// staged gives each group its device.
func staged(t *testing.T, groups []*Group, gpus []GPU) []*rank {
	t.Helper()
	all := make([]*rank, len(groups))
	for r, err := range each(len(groups), func(r int) (err error) {
		all[r] = &rank{Group: groups[r], device: gpus[r].Device}
		if all[r].calls, err = groups[r].Device(t.Context(), gpus[r]); err == nil {
			all[r].stream, err = gpus[r].Device.NewStream(hipgo.StreamNonBlocking)
		}
		return err
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	return all
}

func gpus(all []*hipgo.Device, gate stage.Gate) []GPU {
	list := make([]GPU, len(all))
	for r, d := range all {
		list[r] = GPU{Device: d, Gate: gate}
	}
	return list
}

func (r *rank) raw() fabric.Stream { return fabric.Stream(r.stream.Raw()) }

// gather gathers bytes of each rank's number plus shift from device memory, and checks it.
func (r *rank) gather(ctx context.Context, bytes int, shift byte) (err error) {
	world := r.World()
	memory, err := r.device.Malloc(bytes * (world + 1))
	if err != nil {
		return err
	}
	host, err := r.device.HostMalloc(bytes * (world + 1))
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = errors.Join(memory.Close(), host.Close())
		}
	}()
	for i := range bytes {
		host.Bytes()[i] = byte(r.Rank()) + shift + byte(i)
	}
	in, out := memory.Ptr(), memory.Ptr()+uintptr(bytes)
	if err := errors.Join(r.stream.Copy(in, host.Ptr(), bytes, hipgo.CopyHostToDevice),
		r.calls.AllGather(r.raw(), fabric.DevPtr(out), fabric.DevPtr(in), bytes),
		r.stream.Copy(host.Ptr()+uintptr(bytes), out, bytes*world, hipgo.CopyDeviceToHost)); err != nil {
		return err
	}
	if err := r.calls.Wait(ctx, r.raw()); err != nil {
		return err
	}
	for from := range world {
		for i := range bytes {
			if got, want := host.Bytes()[bytes*(1+from)+i], byte(from)+shift+byte(i); got != want {
				return fmt.Errorf("byte %d of rank %d is %d at rank %d, and should be %d", i, from, got, r.Rank(), want)
			}
		}
	}
	return nil
}

func TestDeviceMemoryMovesOverTCPWithBothGates(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		for world := 1; world <= 4; world++ {
			t.Run(fmt.Sprintf("%v/%d ranks", gate, world), func(t *testing.T) {
				all := staged(t, opened(t, world, func(c *Config) { c.PartBytes = 4096 }), gpus(devices(t, world, hiptest.Settings{}), gate))
				for i, bytes := range []int{1, 4096, 10_000} {
					require.NoError(t, errors.Join(each(world, func(r int) error { return all[r].gather(t.Context(), bytes, byte(i)) })...))
				}
				for _, r := range all {
					assert.Equal(t, "staged", r.Paths()[1].Name)
					assert.Equal(t, gate.String(), r.Paths()[1].Gate)
					assert.Contains(t, r.Paths()[1].Reason, "gfx1151")
				}
				require.NoError(t, errors.Join(closeRanks(all)...))
			})
		}
	}
}

// closeRanks closes the groups, then what they were given.
func closeRanks(all []*rank) []error {
	groups := make([]*Group, len(all))
	for r := range all {
		groups[r] = all[r].Group
	}
	errs := closeAll(groups)
	for _, r := range all {
		errs = append(errs, r.stream.Close())
	}
	return errs
}

func TestAGroupTakesOneGPU(t *testing.T) {
	all := devices(t, 2, hiptest.Settings{})
	ranks := staged(t, opened(t, 2, nil), gpus(all, stage.Auto))
	for _, err := range each(2, func(r int) error {
		_, err := ranks[r].Device(t.Context(), GPU{Device: all[r]})
		return err
	}) {
		assertDeviceError(t, err, fabric.ErrInvalid, `group "default" has its GPU, gfx1151`, "Split it for another")
	}
	// A split has one of its own, which may be the same, and a proxy with it.
	children := make([]*Group, 2)
	require.NoError(t, errors.Join(each(2, func(r int) (err error) {
		children[r], err = ranks[r].Split(t.Context(), "more", 0, r, SplitOptions{})
		return err
	})...))
	more := staged(t, children, gpus(all, stage.Kernels))
	assert.Same(t, ranks[0].Group.device.proxy.Proxy, more[0].Group.device.proxy.Proxy)
	require.NoError(t, errors.Join(each(4, func(i int) error { return append(ranks, more...)[i].gather(t.Context(), 5000, byte(i/2)) })...))
	require.NoError(t, errors.Join(closeRanks(more)...))
	require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), 5000, 9) })...))
	require.NoError(t, errors.Join(closeRanks(ranks)...))
}

func assertDeviceError(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	require.ErrorIs(t, err, want)
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "device", op.Op)
	for _, text := range texts {
		assert.ErrorContains(t, err, text)
	}
}

func TestADeviceThatOneRankCannotTakeIsRefusedOnAllAndTheGroupGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		bad  func(good GPU) GPU
		want error
		text string
	}{
		"no device":    {func(GPU) GPU { return GPU{} }, fabric.ErrInvalid, "GPU names no device"},
		"two devices":  {func(g GPU) GPU { g.Ordinal = 1; return g }, fabric.ErrInvalid, "a Device and a Library or Ordinal"},
		"no such gate": {func(g GPU) GPU { g.Gate = 9; return g }, fabric.ErrInvalid, "Gate is gate(9)"},
		"another gate": {func(g GPU) GPU { g.Gate = stage.Kernels; return g }, fabric.ErrMismatch, "Gate: rank 0 has words, rank 1 has kernels"},
	} {
		t.Run(name, func(t *testing.T) {
			all := devices(t, 2, hiptest.Settings{})
			groups := opened(t, 2, nil)
			began := time.Now()
			for r, err := range each(2, func(r int) error {
				gpu := GPU{Device: all[r], Gate: stage.Words}
				if r == 1 {
					gpu = c.bad(gpu)
				}
				_, err := groups[r].Device(t.Context(), gpu)
				return err
			}) {
				assertDeviceError(t, err, c.want, c.text)
				assert.Equal(t, "staged", groups[r].Paths()[1].Name)
				assert.False(t, groups[r].Paths()[1].Chosen)
			}
			assert.Less(t, time.Since(began), 30*time.Second, "nobody waits for OpenTimeout")
			ranks := staged(t, groups, gpus(all, stage.Words))
			require.NoError(t, errors.Join(each(2, func(r int) error { return ranks[r].gather(t.Context(), 100, 0) })...))
			require.NoError(t, errors.Join(closeRanks(ranks)...))
		})
	}
}

func TestAContextEndsDeviceOnAllRanks(t *testing.T) {
	all := devices(t, 2, hiptest.Settings{})
	groups := opened(t, 2, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for r, err := range each(2, func(r int) error {
		ctx := t.Context()
		if r == 1 {
			ctx = ended
		}
		_, err := groups[r].Device(ctx, GPU{Device: all[r]})
		return err
	}) {
		assertDeviceError(t, err, fabric.ErrAborted, "rank 1 could not open its device", "canceled")
		assert.NoError(t, groups[r].Err(), "rank %d", r)
	}
	require.NoError(t, errors.Join(closeAll(groups)...))
}

func TestTheAutomaticGateTakesNoDeviceThatFailed(t *testing.T) {
	for call, code := range map[string]int{"hipStreamQuery": 719, "hipHostMalloc": 2} {
		world := hiptest.Start(t, hiptest.Settings{})
		groups := opened(t, 1, nil)
		require.NoError(t, world.Fail(hiptest.Fault{Call: call, Code: code}))
		_, err := groups[0].Device(t.Context(), GPU{Device: world.Device(0)})
		assertDeviceError(t, err, fabric.ErrDevice, "rank 0 could not open its device", call)
		assert.NotErrorIs(t, err, errors.ErrUnsupported)
		var failed *hipgo.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, code, failed.Code)
		ranks := staged(t, groups, []GPU{{Device: world.Device(0)}})
		assert.Equal(t, "words", ranks[0].Paths()[1].Gate, "the group has gone on")
		require.NoError(t, errors.Join(closeRanks(ranks)...))
		require.NoError(t, world.Close())
	}
	refusal := &hipgo.UnsupportedError{Device: "gfx0", Feature: "self-test"}
	assert.Equal(t, context.DeadlineExceeded, fault(fmt.Errorf("%w: %w", refusal, context.DeadlineExceeded)), "a call did not return")
	for _, err := range []error{refusal, &hipgo.Error{Call: "hipDeviceGetAttribute", Code: 1}, &hipgo.Error{Call: "hipStreamWaitValue64", Code: 801}} {
		assert.NoError(t, fault(err))
	}
}

func TestOneGateIsSettledForAll(t *testing.T) {
	gate, why, err := settleGate([]offer{{waits: true}, {text: "it will not"}, {text: "nor this"}})
	require.NoError(t, err)
	assert.Equal(t, stage.Kernels, gate)
	assert.Equal(t, "rank 1's device cannot wait on stream values: it will not", why)
	gate, _, err = settleGate([]offer{{waits: true}, {waits: true}})
	require.NoError(t, err)
	assert.Equal(t, stage.Words, gate)
	gate, _, err = settleGate([]offer{{gate: stage.Kernels}, {gate: stage.Kernels}})
	require.NoError(t, err)
	assert.Equal(t, stage.Kernels, gate)
}

func TestAnOfferSurvivesItsJourney(t *testing.T) {
	for _, o := range []offer{{}, {gate: stage.Words, waits: true}, {gate: stage.Kernels, kind: fabric.ErrDevice, text: "hipMalloc"},
		{kind: fabric.ErrUnsupported, text: strings.Repeat("x", maxWhy)}} {
		var got offer
		require.NoError(t, got.decode(o.encode()))
		assert.Equal(t, o, got)
	}
	long := offer{kind: fabric.ErrClosed, text: strings.Repeat("y", 2*maxWhy)}
	var got offer
	require.NoError(t, got.decode(long.encode()))
	assert.Equal(t, offer{kind: fabric.ErrAborted, text: long.text[:maxWhy]}, got)
	for at, to := range map[int]byte{0: 'H', len(offerMagic) + 2: 99, len(offerMagic) + 4: 0xff} {
		b := long.encode()
		b[at] = to
		require.ErrorIs(t, got.decode(b), errNoOffer)
	}
}

func TestARefusalNamesTheDeviceAndWhatItRunsOn(t *testing.T) {
	for name, c := range map[string]struct {
		settings hiptest.Settings
		gate     stage.Gate
	}{
		"words on a device that cannot wait":         {hiptest.Settings{NoStreamWait: true, Arch: "gfx900"}, stage.Words},
		"kernels on an arch that they are not for":   {hiptest.Settings{Arch: "gfx900"}, stage.Kernels},
		"automatic, where neither gate can be taken": {hiptest.Settings{NoStreamWait: true, Arch: "gfx900"}, stage.Auto},
	} {
		t.Run(name, func(t *testing.T) {
			all := devices(t, 2, c.settings)
			groups := opened(t, 2, nil)
			for r, err := range each(2, func(r int) error {
				_, err := groups[r].Device(t.Context(), GPU{Device: all[r], Gate: c.gate})
				return err
			}) {
				assertDeviceError(t, err, fabric.ErrUnsupported, "could not open its device", "gfx900", "0000:c", "HIP 7.15", "the software device")
				assert.NoError(t, groups[r].Err())
				require.ErrorIs(t, err, errors.ErrUnsupported)
			}
			require.NoError(t, errors.Join(closeAll(groups)...))
		})
	}
}
