package hipgo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
	"github.com/hipfabric/hipfabric/hipgo/internal/fakecuda"
)

// calls runs f and gives what the fake driver noted meanwhile.
func calls(t *testing.T, f func()) []string {
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv("FAKECUDA_LOG", path)
	f()
	os.Unsetenv("FAKECUDA_LOG")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// A process has one driver, so all of it is one test: first what refuses and leaves no trace, then the driver itself.
func TestCUDA(t *testing.T) {
	if !driver.Built {
		_, err := hipgo.OpenCUDA(hipgo.Config{})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		t.Skip("this build has no cgo")
	}
	t.Run("a driver that is not there is refused by name", func(t *testing.T) {
		_, err := hipgo.OpenCUDA(hipgo.Config{Library: "/nowhere/libcuda.so.1"})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "/nowhere/libcuda.so.1")
		_, err = hipgo.OpenCUDA(hipgo.Config{Library: "x", Handle: 1})
		assert.ErrorContains(t, err, "one of them")
	})
	t.Run("a driver before 11.7 is refused by the call that it lacks", func(t *testing.T) {
		old, err := fakecuda.BuildOld("..", t.TempDir())
		require.NoError(t, err)
		_, err = hipgo.OpenCUDA(hipgo.Config{Library: old})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "cuStreamWaitValue64_v2")
		assert.ErrorContains(t, err, "11.7")
	})
	library, err := fakecuda.Build("..", t.TempDir())
	require.NoError(t, err)
	t.Run("a driver without a GPU is refused", func(t *testing.T) {
		for _, c := range []struct{ key, value string }{{"FAKECUDA_DEVICES", "0"}, {"FAKECUDA_FAIL", "cuInit=100"}} {
			t.Setenv(c.key, c.value)
			_, err := hipgo.OpenCUDA(hipgo.Config{Library: library})
			require.ErrorIs(t, err, hipgo.ErrNoGPU)
			assert.ErrorContains(t, err, library)
			os.Unsetenv(c.key)
		}
		t.Setenv("FAKECUDA_FAIL", "cuInit=804")
		_, err := hipgo.OpenCUDA(hipgo.Config{Library: library})
		assert.ErrorContains(t, err, "InsufficientDriver")
	})
	rt, err := hipgo.OpenCUDA(hipgo.Config{Library: library})
	require.NoError(t, err)
	t.Run("a second Open gives the same, and a second driver is refused", func(t *testing.T) {
		again, err := hipgo.OpenCUDA(hipgo.Config{Library: library})
		require.NoError(t, err)
		assert.Equal(t, rt, again)
		other, err := fakecuda.BuildOld("..", t.TempDir())
		require.NoError(t, err)
		_, err = hipgo.OpenCUDA(hipgo.Config{Library: other})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "second CUDA driver")
	})
	d, err := rt.Device(0)
	require.NoError(t, err)
	for _, part := range []struct {
		name string
		f    func(*testing.T, *hipgo.Device)
	}{
		{"what it is", cudaFacts},
		{"contexts are restored", cudaContexts},
		{"flags and arguments", cudaArguments},
		{"waits have no mask", cudaMasks},
		{"codes are HIP's", cudaCodes},
		{"pointers", cudaPointers},
		{"modules and launches", cudaModules},
		{"the kernels gate's kernels", cudaMailbox},
		{"a seam of it passes the self-test", cudaSelfTest},
	} {
		t.Run(part.name, func(t *testing.T) { part.f(t, d) })
	}
}

func cudaFacts(t *testing.T, d *hipgo.Device) {
	assert.Equal(t, "sm_90", d.Arch())
	assert.Equal(t, "NVIDIA Fake 0", d.Name())
	assert.Equal(t, "0000:0a:00.0", d.PCI())
	assert.Equal(t, hipgo.Version{Major: 12, Minor: 4}, d.Runtime().Version())
	assert.Equal(t, "CUDA", d.Runtime().Platform())
	assert.Contains(t, d.String(), "CUDA 12.4.0")
	assert.False(t, d.Integrated())
	assert.False(t, d.Runtime().Has(hipgo.FeatureCUMask))
	assert.True(t, d.Runtime().Has(hipgo.FeatureCaptureMode))
	n, err := d.Runtime().Count()
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	for hip, cuda := range map[hipgo.Attribute]int{
		hipgo.AttributeAsyncEngineCount: 40, hipgo.AttributeCanMapHostMemory: 19, hipgo.AttributeConcurrentKernels: 31,
		hipgo.AttributeHostNativeAtomics: 86, hipgo.AttributeManagedMemory: 83, hipgo.AttributePCIBusID: 33,
		hipgo.AttributePCIDeviceID: 34, hipgo.AttributePCIDomainID: 50, hipgo.AttributeStreamPriorities: 78,
		hipgo.AttributeUnifiedAddressing: 41, hipgo.AttributeWarpSize: 10, hipgo.AttributeDMABuf: 124,
		hipgo.AttributeWallClockRate: 1_000_000, hipgo.AttributeStreamWaitValue: 1, hipgo.AttributeMultiprocessorCount: 132,
	} {
		got, err := d.Attribute(hip)
		require.NoError(t, err, hip)
		assert.Equal(t, cuda, got, hip)
	}
	_, err = d.Attribute(hipgo.AttributeIsLargeBar)
	assert.Error(t, err)
	_, err = d.NewStreamCUMask(nil)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
}

func cudaContexts(t *testing.T, d *hipgo.Device) {
	second, err := d.Runtime().Device(1)
	require.NoError(t, err)
	for _, each := range []*hipgo.Device{d, second} {
		_, _, err = each.Memory() // retains its context
		require.NoError(t, err)
	}
	for _, c := range []struct{ current, restored string }{{"none", "none"}, {"own", "own"}, {"1", "1"}} {
		t.Setenv("FAKECUDA_CURRENT", c.current)
		seen := calls(t, func() {
			s, err := d.NewStream(hipgo.StreamNonBlocking)
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
		want := []string{"cuCtxSetCurrent 0", "cuStreamCreate flags 1 device 0", "cuCtxSetCurrent " + c.restored, "cuCtxSetCurrent 0", "cuCtxSetCurrent " + c.restored}
		assert.Equal(t, want, seen, c.current)
	}
	t.Setenv("FAKECUDA_CURRENT", "1")
	assert.Empty(t, calls(t, func() {
		_, _, err := second.Memory()
		require.NoError(t, err)
	}), "the right context is current already")
}

func cudaArguments(t *testing.T, d *hipgo.Device) {
	os.Unsetenv("FAKECUDA_CURRENT")
	words, err := d.HostMalloc(4096)
	require.NoError(t, err)
	defer words.Close()
	s, err := d.NewStream(hipgo.StreamDefault)
	require.NoError(t, err)
	defer s.Close()
	words.Words().Store(2, 77)
	seen := strings.Join(calls(t, func() {
		host, err := d.HostMalloc(100)
		require.NoError(t, err)
		require.NoError(t, host.Close())
		high, err := d.NewStreamPriority(-1)
		require.NoError(t, err)
		require.NoError(t, high.Close())
		e, err := d.NewEvent(hipgo.EventDisableTiming)
		require.NoError(t, err)
		require.NoError(t, e.Close())
		require.NoError(t, s.WriteWait(words.Words().Addr(0), 5, words.Words().Addr(1), 0))
		require.NoError(t, s.WaitValue64(words.Words().Addr(2), 77, hipgo.ConditionEq, ^uint64(0)))
		require.NoError(t, s.WaitValue32(words.Words().Addr(2), 4, hipgo.ConditionAnd, ^uint32(0)))
		require.NoError(t, s.WaitValue32(words.Words().Addr(0), 4, hipgo.ConditionNor, ^uint32(0)))
	}), "\n")
	for _, want := range []string{
		"cuMemHostAlloc 100 flags 3", "cuStreamCreateWithPriority flags 1 priority -1", "cuEventCreate flags 2",
		"cuStreamWriteValue64_v2 5 flags 0", "cuStreamWaitValue64_v2 0 flags 0", "cuStreamWaitValue64_v2 77 flags 1",
		"cuStreamWaitValue32_v2 4 flags 2", "cuStreamWaitValue32_v2 4 flags 3",
	} {
		assert.Contains(t, seen, want)
	}
	require.NoError(t, s.Synchronize(within(t, 10*time.Second)))
	assert.Equal(t, uint64(5), words.Words().Load(0))
	assert.Error(t, s.Copy(words.Ptr(), words.Ptr()+8, 8, 9))
	_, _, code := d.Runtime().Table().HostMallocFlags(0, 64, 0x80000000)
	assert.Equal(t, 1, code, "memory that is not coherent cannot be had")
	assert.Equal(t, 1, d.Runtime().Table().Write64Flags(0, s.Raw(), words.Ptr(), 1, 1), "CUDA's flag 1 would take the barrier away")
}

func cudaMasks(t *testing.T, d *hipgo.Device) {
	words, err := d.HostMalloc(64)
	require.NoError(t, err)
	defer words.Close()
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	defer s.Close()
	for _, err := range []error{
		s.WaitValue64(words.Ptr(), 0, hipgo.ConditionGte, 0xff),
		s.WaitValue32(words.Ptr(), 0, hipgo.ConditionGte, 0xff),
	} {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "hipStreamWaitValue")
	}
	assert.NotErrorIs(t, s.WaitValue64(words.Ptr(), 0, 4, ^uint64(0)), errors.ErrUnsupported, "no such condition")
}

func cudaCodes(t *testing.T, d *hipgo.Device) {
	for _, c := range []struct {
		cuda string
		hip  int
	}{
		{"2", 2}, {"34", 303}, {"222", 35}, {"719", 719}, {"802", 3}, {"803", 35}, {"900", 900}, {"909", 702}, {"214", 214}, {"46", 46},
	} {
		t.Setenv("FAKECUDA_FAIL", "cuMemAlloc_v2="+c.cuda)
		_, err := d.Malloc(64)
		var e *hipgo.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, c.hip, e.Code, c.cuda)
		assert.Equal(t, "hipMalloc", e.Call)
	}
	os.Unsetenv("FAKECUDA_FAIL")
}

func cudaPointers(t *testing.T, d *hipgo.Device) {
	memory, err := d.Malloc(8192)
	require.NoError(t, err)
	host, err := d.HostMalloc(4096)
	require.NoError(t, err)
	at, err := d.Runtime().Pointer(memory.Ptr() + 100)
	require.NoError(t, err)
	assert.Equal(t, hipgo.MemoryDevice, at.Kind)
	assert.Equal(t, memory.Ptr(), at.Base)
	assert.Equal(t, 0, at.Device)
	at, err = d.Runtime().Pointer(host.Ptr())
	require.NoError(t, err)
	assert.Equal(t, hipgo.MemoryHost, at.Kind)
	at, err = d.Runtime().Pointer(0x1000)
	require.NoError(t, err)
	assert.Equal(t, hipgo.MemoryUnknown, at.Kind)
	require.NoError(t, memory.Close())
	require.NoError(t, host.Close())
}

func cudaModules(t *testing.T, d *hipgo.Device) {
	const ptx = ".version 7.0\n.target sm_70\n.visible .entry twice(\n"
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	defer s.Close()
	seen := strings.Join(calls(t, func() {
		m, err := d.LoadModule([]byte(ptx))
		require.NoError(t, err)
		_, err = m.Function("thrice")
		assert.Error(t, err)
		f, err := m.Function("twice")
		require.NoError(t, err)
		require.NoError(t, s.Launch(f, [3]int{4, 2, 1}, [3]int{256, 1, 1}, 64, []byte{9, 0, 0, 0, 0, 0, 0, 0}))
		require.NoError(t, m.Close())
	}), "\n")
	assert.Contains(t, seen, "cuModuleLoadData 50 bytes of text")
	assert.Contains(t, seen, "cuLaunchKernel grid 4 2 1 block 256 1 1 shared 64 argument 9 extra 0")
	for name, image := range map[string]string{
		"no PTX": "text", "for a newer GPU": ".version 8.8\n.target sm_120\n.visible .entry twice(\n", "without the kernel": ".version 7.0\n.target sm_70\n",
	} {
		_, _, err = d.Seam().Load([]byte(image), "twice")
		require.ErrorIs(t, err, errors.ErrUnsupported, name)
	}
}

// The kernels gate's own kernels, from the PTX that is built in, as the gate loads and launches them.
func cudaMailbox(t *testing.T, d *hipgo.Device) {
	require.NotZero(t, mailbox.PTX[len(mailbox.PTX)-1], "the driver reads a string: its end is added on the way")
	seam := d.Seam()
	module, functions, err := seam.Load(mailbox.PTX, "hf_stage", "hf_collect")
	require.NoError(t, err)
	require.Len(t, functions, 2)
	assert.NotEqual(t, functions[0], functions[1])
	host, at, err := seam.AllocHost(6336 + 64) // struct hf_host, and a window
	require.NoError(t, err)
	device, err := seam.AllocDevice(256) // struct hf_device
	require.NoError(t, err)
	memory, err := d.Malloc(64)
	require.NoError(t, err)
	stream, event, _, err := seam.OpenStream(false)
	require.NoError(t, err)
	s := d.WrapStream(stream)
	require.NoError(t, s.Memset(memory.Ptr(), 7, 64))
	args := make([]byte, 120) // struct hf_args
	for i, v := range map[int]uint64{0: uint64(device), 8: uint64(at), 16: uint64(at + 6336), 32: uint64(memory.Ptr()), 40: 64, 72: 5e9, 80: 33, 104: 1 | 1<<32} {
		binary.NativeEndian.PutUint64(args[i:], v)
	}
	seen := strings.Join(calls(t, func() { require.NoError(t, seam.Launch(stream, functions[0], 3, 256, args)) }), "\n")
	assert.Contains(t, seen, "cuLaunchKernel grid 3 1 1 block 256 1 1 shared 0")
	require.NoError(t, s.Synchronize(within(t, 10*time.Second)))
	words, err := fabric.Words(host[:6336])
	require.NoError(t, err)
	assert.Equal(t, uint64(1), words[1], "ready of the first sequence")
	assert.Equal(t, uint64(33), words[2048/8+1], "and its descriptor")
	assert.Equal(t, bytes.Repeat([]byte{7}, 64), host[6336:])
	copy(host[6336:], bytes.Repeat([]byte{8}, 64))
	require.NoError(t, seam.Launch(stream, functions[1], 3, 256, args))
	ready, err := s.Query()
	require.NoError(t, err)
	assert.False(t, ready, "collect waits for done")
	atomic.StoreUint64(&words[4096/8+1], 1)
	require.NoError(t, s.Synchronize(within(t, 10*time.Second)))
	clear(host[6336:])
	require.NoError(t, s.Copy(at+6336, memory.Ptr(), 64, hipgo.CopyDefault))
	require.NoError(t, s.Synchronize(within(t, 10*time.Second)))
	assert.Equal(t, bytes.Repeat([]byte{8}, 64), host[6336:], "what was in the window")
	require.NoError(t, errors.Join(seam.CloseStream(stream, event), seam.FreeDevice(device), seam.FreeHost(host), seam.Unload(module), memory.Close()))
}

func cudaSelfTest(t *testing.T, d *hipgo.Device) {
	require.NoError(t, d.SelfTest(within(t, 10*time.Second)))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	err := d.SelfTestUnbounded(cancelled) // while its stream is parked
	require.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), "left behind", "a word that lets a comparison by sign through has released the stream")
	seam := d.Seam()
	assert.Contains(t, seam.String(), "CUDA 12.4.0")
	stream, event, private, err := seam.OpenStream(false)
	require.NoError(t, err)
	assert.False(t, private)
	require.NoError(t, seam.CloseStream(stream, event))
}
