//go:build cgo && linux

package hiptest_test

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// touch reads a byte at an address and says whether that faulted.
func touch(p uintptr) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { faulted = recover() != nil }()
	at := *(*unsafe.Pointer)(unsafe.Pointer(&p)) // C's memory, which no collector moves
	return *(*byte)(at) == 0xff
}

func TestTheHostCannotTouchADiscreteDevicesMemory(t *testing.T) {
	for _, integrated := range []bool{false, true} {
		t.Run(map[bool]string{false: "discrete", true: "integrated"}[integrated], func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Integrated: integrated})
			b, err := w.Device(0).Malloc(4096)
			require.NoError(t, err)
			assert.Equal(t, integrated, w.Device(0).Integrated())
			assert.Equal(t, !integrated, touch(b.Ptr()))
			assert.True(t, touch(b.Ptr()+4096), "a guard page follows")
			assert.True(t, touch(b.Ptr()-1), "a guard page precedes")
			at := b.Ptr()
			require.NoError(t, b.Close())
			assert.True(t, touch(at), "freed memory is nobody's")
		})
	}
}

func TestNoGPU(t *testing.T) {
	for _, code := range []int{100, 101} {
		w := hiptest.Start(t, hiptest.Settings{NoGPU: code})
		_, err := w.Runtime().Count()
		if err == nil {
			_, err = w.Runtime().Device(0)
		}
		require.ErrorIs(t, err, hipgo.ErrNoGPU)
		require.NoError(t, w.Close())
	}
}

func TestVersionsDecideOnNumbersAndLayouts(t *testing.T) {
	for _, c := range []struct {
		hip, arch string
		version   hipgo.Version
	}{
		{"5.2.21153", "gfx90a", hipgo.Version{Major: 5, Minor: 2, Patch: 21153}},
		{"6.2.41134", "gfx1030", hipgo.Version{Major: 6, Minor: 2, Patch: 41134}},
		{"7.15.60940", "gfx1201", hipgo.Version{Major: 7, Minor: 15, Patch: 60940}},
	} {
		t.Run(c.hip, func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{HIP: c.hip, Arch: c.arch, Name: "A name with spaces"})
			d := w.Device(0)
			assert.Equal(t, c.version, w.Runtime().Version())
			assert.Equal(t, c.arch, d.Arch())
			assert.Equal(t, "A name with spaces", d.Name())
			memory, host := onDevice(t, d, 100), pinned(t, d, 100)
			p, err := w.Runtime().Pointer(memory.Ptr() + 10)
			require.NoError(t, err)
			assert.Equal(t, hipgo.MemoryDevice, p.Kind)
			assert.Equal(t, memory.Ptr(), p.Base)
			assert.Equal(t, 100, p.Size)
			p, err = w.Runtime().Pointer(host.Ptr())
			require.NoError(t, err)
			assert.Equal(t, hipgo.MemoryHost, p.Kind)
			assert.Equal(t, c.version.Major >= 7, w.Runtime().Has(hipgo.FeatureDMABuf))
		})
	}
}

func TestAMissingSymbol(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}})
	assert.False(t, w.Runtime().Has(hipgo.FeatureCUMask))
	_, err := w.Device(0).NewStreamCUMask(nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, w.Close())
	_, err = hiptest.New(hiptest.Settings{Missing: []string{"hipMemcpyAsync"}})
	require.ErrorContains(t, err, "hipMemcpyAsync")
	w, err = hiptest.New(hiptest.Settings{})
	require.NoError(t, err, "a world that could not be opened is no longer in the way")
	require.NoError(t, w.Close())
}

func TestOneWorldAtATime(t *testing.T) {
	w, err := hiptest.New(hiptest.Settings{})
	require.NoError(t, err)
	_, err = hiptest.New(hiptest.Settings{})
	require.ErrorContains(t, err, "close that one first")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	second, err := hiptest.New(hiptest.Settings{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, second.Device(0).SelfTest(t.Context()), "closing the first again leaves the second alone")
	require.NoError(t, second.Close())
}

func TestWrongSettings(t *testing.T) {
	for _, s := range []hiptest.Settings{
		{Devices: 17}, {HIP: "9.0.0"}, {HIP: "7 devices=2"}, {HWQueues: -1}, {CopyBandwidth: 10}, {NoGPU: 5},
		{NoStreamWait: true, StreamWaitError: true}, {Devices: 2, Visible: []int{2}}, {Capture: 9},
	} {
		w, err := hiptest.New(s)
		if !assert.Error(t, err, "%+v", s) {
			require.NoError(t, w.Close())
		}
	}
}

func TestVisibleDevicesAreRenumbered(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 3, Visible: []int{2, 0}})
	n, err := w.Runtime().Count()
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, "0000:c7:00.0", w.Device(0).PCI())
	assert.Equal(t, "0000:c5:00.0", w.Device(1).PCI())
}

func TestADeviceThatCannotWaitIsRefusedByName(t *testing.T) {
	for _, s := range []hiptest.Settings{{NoStreamWait: true, Name: "Half"}, {StreamWaitError: true, Name: "Half"}} {
		t.Run(s.String(), func(t *testing.T) {
			w := hiptest.Start(t, s)
			err := w.Device(0).SelfTest(t.Context())
			require.ErrorIs(t, err, errors.ErrUnsupported)
			require.ErrorContains(t, err, "Half")
		})
	}
}

func TestLeaksAndMisuseAreTold(t *testing.T) {
	w, err := hiptest.New(hiptest.Settings{})
	require.NoError(t, err)
	defer w.Close()
	d := w.Device(0)
	b, err := d.Malloc(64)
	require.NoError(t, err)
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	assert.Contains(t, w.Leaks(), "device memory 1: 64 bytes")
	assert.Contains(t, w.Leaks(), "streams: 1")
	require.NoError(t, w.Queue(s).Hold())
	require.NoError(t, s.Memset(b.Ptr(), 1, 64))
	freed := make(chan error, 1)
	go func() { freed <- b.Close() }()
	require.Eventually(t, func() bool { return w.Reports() != "" }, within30, tick)
	assert.Contains(t, w.Reports(), "was freed while 1 queued operations use it")
	require.NoError(t, w.Queue(s).Release())
	require.NoError(t, <-freed)
	require.Error(t, s.Memset(b0(b), 1, 64))
	require.NoError(t, s.Close())
	assert.Empty(t, w.Leaks())
}

// Worlds leave neither threads nor mappings behind, whatever they were doing when they were closed.
func TestWorldsLeaveNothingBehind(t *testing.T) {
	round := func() {
		w, err := hiptest.New(hiptest.Settings{Devices: 2})
		require.NoError(t, err)
		d := w.Device(0)
		words, err := d.HostMalloc(4096)
		require.NoError(t, err)
		for range 3 {
			s, err := d.NewStreamCUMask(nil)
			require.NoError(t, err)
			require.NoError(t, s.WaitValue64(words.Words().Addr(0), 1, hipgo.ConditionGte, ^uint64(0)))
		}
		b, err := d.Malloc(1 << 20)
		require.NoError(t, err)
		s, err := d.NewStream(hipgo.StreamNonBlocking)
		require.NoError(t, err)
		require.NoError(t, s.Copy(b.Ptr(), words.Ptr(), 4096, hipgo.CopyDefault))
		require.NoError(t, w.Close())
	}
	for range 5 {
		round()
	}
	threads, maps := threadCount(t), mapCount(t)
	for range 50 {
		round()
	}
	assert.LessOrEqual(t, threadCount(t), threads+5) // Go's own come and go
	assert.LessOrEqual(t, mapCount(t), maps+20)
}

func threadCount(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	return len(entries)
}

func mapCount(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}
