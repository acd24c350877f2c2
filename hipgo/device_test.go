package hipgo_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestADeviceSaysWhatItIs(t *testing.T) {
	for hip, version := range map[string]hipgo.Version{
		"5.2.21153": {Major: 5, Minor: 2, Patch: 21153}, "6.2.41134": {Major: 6, Minor: 2, Patch: 41134}, "7.15.26333": {Major: 7, Minor: 15, Patch: 26333},
	} {
		t.Run(hip, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{HIP: hip, Arch: "gfx90a:sramecc+:xnack-", Name: "Soft", Devices: 2, Integrated: true, MemoryMB: 64})
			rt := w.Runtime()
			assert.Equal(t, version, rt.Version())
			d := w.Device(1)
			assert.Equal(t, 1, d.Ordinal())
			assert.Equal(t, "gfx90a:sramecc+:xnack-", d.Arch(), "read at the offset of its version")
			assert.Contains(t, d.Name(), "Soft")
			assert.NotEqual(t, w.Device(0).PCI(), d.PCI())
			assert.True(t, d.Integrated())
			assert.Same(t, rt, d.Runtime())
			assert.Equal(t, fmt.Sprintf("%s %s at %s, HIP %s, %s", d.Arch(), d.Name(), d.PCI(), hip, rt.Library()), d.String())
			units, err := d.Attribute(hipgo.AttributeMultiprocessorCount)
			require.NoError(t, err)
			assert.Positive(t, units)
			free, total, err := d.Memory()
			require.NoError(t, err)
			assert.Equal(t, uint64(64<<20), total)
			assert.LessOrEqual(t, free, total)
		})
	}
}

func TestArchIsReadFromTheLayoutThatThereIs(t *testing.T) {
	for _, missing := range []string{"", "hipGetDeviceProperties", "hipGetDevicePropertiesR0600"} {
		w := hiptest.Start(t, hiptest.Settings{Arch: "gfx942", Missing: strings.Fields(missing)})
		assert.Equal(t, "gfx942", w.Device(0).Arch(), "without %s", missing)
		require.NoError(t, w.Close())
	}
	w := hiptest.Start(t, hiptest.Settings{Missing: []string{"hipGetDeviceProperties", "hipGetDevicePropertiesR0600"}})
	assert.Regexp(t, "^sm_[0-9]+$", w.Device(0).Arch(), "the other HIP platform has numbers")
}

func TestADeviceIsChosenByPlaceElseAloneElseByRank(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 3})
	rt := w.Runtime()
	d, err := rt.Choose(hipgo.Selector{PCI: w.Device(2).PCI(), LocalRank: 1})
	require.NoError(t, err)
	assert.Equal(t, 2, d.Ordinal())
	d, err = rt.Choose(hipgo.Selector{LocalRank: 1})
	require.NoError(t, err)
	assert.Equal(t, 1, d.Ordinal())
	for _, wrong := range []struct {
		s    hipgo.Selector
		says string
	}{
		{hipgo.Selector{PCI: "0000:ff:1f.7"}, "no device at 0000:ff:1f.7"},
		{hipgo.Selector{LocalRank: 3}, "local rank 3"},
		{hipgo.Selector{LocalRank: -1}, "local rank -1"},
	} {
		_, err := rt.Choose(wrong.s)
		assert.ErrorContains(t, err, wrong.says)
		for i := range 3 {
			assert.ErrorContains(t, err, w.Device(i).PCI(), "an error names what there is")
		}
		assert.ErrorContains(t, err, rt.Library())
	}
	for _, ordinal := range []int{-1, 3} {
		_, err = rt.Device(ordinal)
		assert.ErrorContains(t, err, fmt.Sprintf("device %d: there are 3", ordinal))
	}
	all, err := rt.Devices()
	require.NoError(t, err)
	assert.Len(t, all, 3)
}

func TestTheOnlyDeviceServesEveryRank(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 3, Visible: []int{2}})
	d, err := w.Runtime().Choose(hipgo.Selector{LocalRank: 5})
	require.NoError(t, err)
	assert.Equal(t, 0, d.Ordinal())
}

func TestNoGPUHasTwoCodes(t *testing.T) {
	for _, code := range []int{100, 101} {
		w := hiptest.Start(t, hiptest.Settings{NoGPU: code})
		rt := w.Runtime()
		_, counted := rt.Count()
		_, taken := rt.Device(0)
		_, listed := rt.Devices()
		_, chosen := rt.Choose(hipgo.Selector{PCI: "0000:01:00.0"})
		for _, err := range []error{counted, taken, listed, chosen} {
			require.ErrorIs(t, err, hipgo.ErrNoGPU, code)
			assert.ErrorIs(t, err, errors.ErrUnsupported)
			assert.ErrorContains(t, err, rt.Library())
		}
		require.NoError(t, w.Close())
	}
}

func TestEveryCallLeavesTheThreadsDeviceAsItWas(t *testing.T) {
	b := start(t, hiptest.Settings{Devices: 2})
	table := b.Runtime().Table()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.Zero(t, table.SetCurrent(1)) // the engine's thread is on the other device
	defer table.SetCurrent(0)
	strict := 1 // thread-local: the engine's
	_, code := table.ExchangeCaptureMode(strict)
	require.Zero(t, code)
	still := func(what string, err error) {
		t.Helper()
		require.NoError(t, err, what)
		mode, code := table.ExchangeCaptureMode(strict)
		require.Zero(t, code)
		assert.Equal(t, strict, mode, what)
		now, code := table.Current()
		require.Zero(t, code)
		assert.Equal(t, 1, now, what)
	}
	memory, err := b.d.Malloc(4096)
	still("malloc", err)
	p, err := b.Runtime().Pointer(memory.Ptr())
	still("pointer", err)
	assert.Equal(t, 0, p.Device, "memory is of the device that was asked")
	pinned, err := b.d.HostMalloc(64)
	still("host malloc", err)
	_, _, err = b.d.Memory()
	still("memory", err)
	_, _, err = b.d.PriorityRange()
	still("priority range", err)
	s, err := b.d.NewStream(hipgo.StreamNonBlocking)
	still("stream", err)
	masked, err := b.d.NewStreamCUMask(nil)
	still("mask stream", err)
	urgent, err := b.d.NewStreamPriority(-1)
	still("priority stream", err)
	e, err := b.d.NewEvent(hipgo.EventDefault)
	still("event", err)
	still("write", s.WriteValue64(b.words.Addr(0), 1)) // HIP 7 refuses it on a thread of another device
	still("write 32", s.WriteValue32(b.words.Addr(1), 1))
	still("wait", s.WaitValue64(b.words.Addr(0), 1, hipgo.ConditionGte, ^uint64(0)))
	still("wait 32", s.WaitValue32(b.words.Addr(1), 1, hipgo.ConditionEq, ^uint32(0)))
	still("write+wait", s.WriteWait(b.words.Addr(2), 5, b.words.Addr(2), 5))
	still("copy", s.Copy(memory.Ptr(), pinned.Ptr(), 64, hipgo.CopyDefault))
	still("memset", s.Memset(memory.Ptr(), 7, 64))
	still("record", e.Record(s))
	still("wait event", s.WaitEvent(e))
	_, err = s.Capturing()
	still("capturing", err)
	_, err = s.Query()
	still("query", err)
	still("synchronize", s.Synchronize(within(t, bound)))
	_, err = e.Query()
	still("event query", err)
	still("begin capture", s.BeginCapture(hipgo.CaptureRelaxed))
	still("captured memset", s.Memset(memory.Ptr(), 8, 64))
	graph, err := s.EndCapture()
	still("end capture", err)
	exec, err := graph.Instantiate()
	still("instantiate", err)
	still("graph launch", exec.Launch(s))
	still("synchronize again", s.Synchronize(within(t, bound)))
	still("self-test", b.d.SelfTest(within(t, bound)))
	for what, c := range map[string]interface{ Close() error }{
		"exec": exec, "graph": graph, "event": e, "stream": s, "mask stream": masked, "urgent": urgent, "pinned": pinned, "memory": memory,
	} {
		still("close "+what, c.Close())
		still("close again "+what, c.Close())
	}
	// A call that fails restores it too.
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipMalloc", Code: 2}))
	_, err = b.d.Malloc(64)
	require.ErrorContains(t, err, "hipErrorOutOfMemory")
	still("failed malloc", nil)
}

func TestAnEnginesLastErrorIsItsOwn(t *testing.T) {
	b := start(t, hiptest.Settings{Devices: 2})
	table := b.Runtime().Table()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.Zero(t, table.LastError())
	for _, call := range []string{"hipMalloc", "hipMemGetAddressRange", "hipDeviceGetAttribute", "hipGetDevice", "hipStreamIsCapturing"} {
		require.NoError(t, b.Fail(hiptest.Fault{Call: call, Code: 999}))
		failed := 0
		for what, ask := range map[string]func() error{
			"malloc":    func() error { _, err := b.d.Malloc(0x7fff_ffff_ffff); return err },
			"attribute": func() error { _, err := b.d.Attribute(-1); return err },
			"capturing": func() error { _, err := b.s.Capturing(); return err },
			"pointer":   func() error { _, err := b.Runtime().Pointer(b.page.Ptr()); return err },
		} {
			if ask() != nil {
				failed++
			}
			assert.Zero(t, table.LastError(), "%s, where %s fails", what, call)
		}
		assert.GreaterOrEqual(t, failed, 2, call)
	}
	require.NoError(t, b.s.WaitValue64(b.words.Addr(0), 1, hipgo.ConditionGte, ^uint64(0)))
	ready, err := b.s.Query()
	require.NoError(t, err)
	assert.False(t, ready)
	assert.Zero(t, table.LastError(), "not ready is no error of the engine's")
	b.words.Store(0, 1)
	b.drained(t)

	require.Equal(t, 101, table.SetCurrent(99)) // the engine's own mistake
	_, _, err = b.d.Memory()
	require.NoError(t, err)
	assert.Equal(t, 101, table.LastError(), "which it still finds")
}

func TestWhatIsOptionalHasAQuestion(t *testing.T) {
	names := map[hipgo.Feature]string{
		hipgo.FeatureCUMask: "hipExtStreamCreateWithCUMask", hipgo.FeatureCaptureMode: "hipThreadExchangeStreamCaptureMode",
		hipgo.FeatureAddressRange: "hipMemGetAddressRange",
	}
	for feature, name := range names {
		w := hiptest.Start(t, hiptest.Settings{Missing: []string{name}})
		for other := range names {
			assert.Equal(t, other != feature, w.Runtime().Has(other), "%s without %s", names[other], name)
		}
		_, err := w.Device(0).NewStreamCUMask(nil)
		assert.Equal(t, feature == hipgo.FeatureCUMask, errors.Is(err, errors.ErrUnsupported))
		if feature == hipgo.FeatureCUMask {
			assert.ErrorContains(t, err, w.Device(0).String())
		}
		require.NoError(t, w.Close())
	}
}

func TestAMissingSymbolIsNamed(t *testing.T) {
	require.NoError(t, hiptest.Start(t, hiptest.Settings{}).Close()) // or skips
	for _, name := range []string{"hipMalloc", "hipStreamWaitValue64", "hipGraphLaunch"} {
		_, err := hiptest.New(hiptest.Settings{Missing: []string{name}})
		var load *hipgo.LoadError
		require.ErrorAs(t, err, &load, name)
		assert.Equal(t, name, load.Symbol)
	}
}
