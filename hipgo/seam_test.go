package hipgo_test

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

var (
	_ stage.Driver   = (*hipgo.Seam)(nil)
	_ stage.Launcher = (*hipgo.Seam)(nil)
)

func TestASeamSaysWhatAnAddressIs(t *testing.T) {
	for _, missing := range [][]string{nil, {"hipMemGetAddressRange"}} {
		b := start(t, hiptest.Settings{Devices: 2, Missing: missing})
		seam := b.d.Seam()
		ours, err := b.d.Malloc(1 << 16)
		require.NoError(t, err)
		theirs, err := b.World.Device(1).Malloc(1 << 16)
		require.NoError(t, err)
		gone, err := b.d.Malloc(1 << 16)
		require.NoError(t, err)
		freed := gone.Ptr()
		require.NoError(t, gone.Close())
		plain := make([]byte, 64)

		for _, good := range []struct {
			p     uintptr
			bytes int
			host  bool
		}{
			{ours.Ptr(), 1 << 16, false}, {ours.Ptr() + 100, 1<<16 - 100, false}, {b.page.Ptr(), 4096, true}, {b.page.Ptr() + 8, 8, true}, {0, 0, false},
		} {
			host, err := seam.Inspect(good.p, good.bytes)
			require.NoError(t, err)
			assert.Equal(t, good.host, host)
		}
		for says, bad := range map[string]struct {
			p     uintptr
			bytes int
		}{
			"is no memory that HIP knows":                        {freed, 8},
			"never allocated, freed, or plain host memory":       {uintptr(unsafe.Pointer(&plain[0])), 8},
			"0x0 is no memory that HIP knows":                    {0, 8},
			"is device memory of device 1, and this is device 0": {theirs.Ptr(), 8},
			"65537 bytes at":                                     {ours.Ptr(), 1<<16 + 1},
			"4097 bytes at":                                      {b.page.Ptr(), 4097},
			"a length is 0 or more":                              {ours.Ptr(), -1},
		} {
			_, err := seam.Inspect(bad.p, bad.bytes)
			assert.ErrorContains(t, err, says, "without %v", missing)
		}
		if missing == nil {
			_, err = seam.Inspect(ours.Ptr()+1<<16-8, 9)
			assert.ErrorContains(t, err, "only 8 are left of its allocation of 65536")
		}
		require.NoError(t, ours.Close())
		require.NoError(t, theirs.Close())
		require.NoError(t, b.s.Close())
		require.NoError(t, b.page.Close())
		require.NoError(t, b.World.Close())
	}
}

func TestASeamMovesBytesBehindAWord(t *testing.T) {
	b := start(t, hiptest.Settings{})
	seam := b.d.Seam()
	assert.Equal(t, b.d.String(), seam.String())
	assert.Equal(t, b.d.Integrated(), seam.Integrated())
	assert.Equal(t, 100_000, seam.Clock())
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipDeviceGetAttribute", Code: 1}))
	assert.Zero(t, seam.Clock(), "a runtime that does not know")
	mem, at, err := seam.AllocHost(64)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 64), mem)
	p, err := seam.AllocDevice(64)
	require.NoError(t, err)
	trace := b.Trace()
	assert.Equal(t, "MemsetAsync", trace[len(trace)-1].Name, "fresh memory may hold anything")
	stream, event, private, err := seam.OpenStream(false)
	require.NoError(t, err)
	assert.True(t, private)
	copy(mem, "staged")
	mem[32] = 9 // which device memory, zeroed, overwrites
	require.NoError(t, seam.Copy(stream, at+32, p, 32))
	require.NoError(t, seam.Copy(stream, p, at, 32))
	require.NoError(t, writeWait(seam, stream, b.words.Addr(0), 1, b.words.Addr(1), 2))
	require.NoError(t, seam.Copy(stream, at+32, p, 32))
	require.NoError(t, seam.Record(stream, event))
	require.NoError(t, b.Settle(bound))
	assert.Equal(t, make([]byte, 32), mem[32:])
	reached, err := seam.Query(event)
	require.NoError(t, err)
	assert.False(t, reached)
	capturing, err := seam.Capturing(stream)
	require.NoError(t, err)
	assert.False(t, capturing)
	b.words.Store(1, 2)
	require.NoError(t, b.d.WrapEvent(event).Synchronize(within(t, bound)))
	assert.Equal(t, "staged", string(mem[32:38]))
	require.NoError(t, b.s.BeginCapture(hipgo.CaptureRelaxed))
	capturing, err = seam.Capturing(b.s.Raw())
	require.NoError(t, err)
	assert.True(t, capturing)
	graph, err := b.s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, graph.Close())

	require.ErrorContains(t, seam.CloseStream(stream, event+1), "is not stream")
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipStreamDestroy", Code: 719}))
	require.Error(t, seam.CloseStream(stream, event))
	require.NoError(t, seam.CloseStream(stream, event), "what failed may be tried again")
	require.NoError(t, seam.FreeHost(mem))
	require.NoError(t, seam.FreeDevice(p))
	require.ErrorContains(t, seam.CloseStream(stream, event), "not from OpenStream, or closed already")
	require.ErrorContains(t, seam.FreeHost(mem), "not from AllocHost, or freed already")
	require.ErrorContains(t, seam.FreeDevice(p), "not from AllocDevice, or freed already")
	require.ErrorContains(t, seam.Unload(1), "not from Load, or unloaded already")
	require.ErrorContains(t, seam.Copy(stream, p, p, -1), "-1 bytes")
	require.ErrorContains(t, seam.Launch(stream, 1, 0, 1, nil), "0 blocks")
	require.ErrorContains(t, seam.Launch(stream, 1, 1, 1, make([]byte, 5000)), "5000 bytes")
}

func TestWithoutCUMasksAStreamIsNotPrivate(t *testing.T) {
	b := start(t, hiptest.Settings{Missing: []string{"hipExtStreamCreateWithCUMask"}})
	seam := b.d.Seam()
	stream, event, private, err := seam.OpenStream(false)
	require.NoError(t, err)
	assert.False(t, private)
	require.NoError(t, seam.CloseStream(stream, event))
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipEventCreateWithFlags", Code: 2}))
	_, _, _, err = seam.OpenStream(false)
	require.ErrorContains(t, err, "hipEventCreateWithFlags")
}

func TestASeamsEventHasNoStreamOfItsOwn(t *testing.T) {
	b := start(t, hiptest.Settings{})
	seam := b.d.Seam()
	none, event, _, err := seam.OpenStream(true)
	require.NoError(t, err)
	assert.Zero(t, none)
	require.NoError(t, seam.Record(b.s.Raw(), event))
	require.NoError(t, b.d.WrapEvent(event).Synchronize(within(t, bound)))
	require.NoError(t, seam.CloseStream(0, event))
	require.ErrorContains(t, seam.CloseStream(0, event), "not from OpenStream, or closed already")
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipEventCreateWithFlags", Code: 2}))
	_, _, _, err = seam.OpenStream(true)
	require.ErrorContains(t, err, "hipEventCreateWithFlags")
}

// A stream is met once, by an event that leaves nothing behind; one that captures is left alone, and one whose call failed is met anew.
func TestASeamMeetsAStreamOnce(t *testing.T) {
	b := start(t, hiptest.Settings{Devices: 2, HIP: "6.2.41134"})
	seam, at := b.d.Seam(), b.words.Addr(0)
	second, err := b.d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	records := func(calls int, streams ...hipgo.Stream) (n int) {
		t.Helper()
		before := len(b.Trace())
		for range calls {
			for _, s := range streams {
				require.NoError(t, writeWait(seam, s.Raw(), at, 1, at, 0))
			}
		}
		b.drained(t)
		require.NoError(t, second.Synchronize(within(t, bound)))
		for _, op := range b.Trace()[before:] {
			if op.Name == "EventRecord" {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 2, records(5, b.s, second))
	assert.Zero(t, records(5, b.s, second))
	require.NoError(t, b.Fail(hiptest.Fault{Call: "hipStreamWriteValue64", Code: 999}))
	require.ErrorContains(t, writeWait(seam, second.Raw(), at, 1, at, 0), "hipStreamWriteValue64")
	assert.Equal(t, 1, records(5, b.s, second))
	for call, on := range map[string]hipgo.Stream{"hipEventCreateWithFlags": second, "hipEventRecord": second} {
		require.NoError(t, b.Fail(hiptest.Fault{Call: call, Code: 999}))
		require.ErrorContains(t, writeWait(b.d.Seam(), on.Raw(), at, 1, at, 0), call, "a device that fails refuses nothing")
	}
	other, err := b.World.Device(1).NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	for range 3 {
		err = writeWait(seam, other.Raw(), at, 1, at, 0)
		var refused interface{ Invalid() bool }
		require.ErrorAs(t, err, &refused)
		assert.True(t, refused.Invalid())
		require.ErrorContains(t, err, "hipEventRecord: hipErrorInvalidHandle (400)")
	}
	require.NoError(t, errors.Join(other.Close(), second.Close()))
}

func TestASeamsHotCallsAllocateNothing(t *testing.T) {
	b := start(t, hiptest.Settings{})
	seam := b.d.Seam()
	stream, event, _, err := seam.OpenStream(false)
	require.NoError(t, err)
	at := b.page.Ptr()
	for name, call := range map[string]func() error{
		"write+wait": func() error { return writeWait(seam, stream, at, 1, at, 0) },
		"copy":       func() error { return seam.Copy(stream, at+64, at+128, 64) },
		"record":     func() error { return seam.Record(stream, event) },
		"query":      func() error { _, err := seam.Query(event); return err },
		"capturing":  func() error { _, err := seam.Capturing(stream); return err },
		"inspect":    func() error { _, err := seam.Inspect(at, 64); return err },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if err := call(); err != nil {
				panic(err)
			}
		}), name)
	}
	require.NoError(t, b.Settle(bound+20*time.Second))
	require.NoError(t, seam.CloseStream(stream, event))
}

func writeWait(s *hipgo.Seam, stream, ready uintptr, r uint64, done uintptr, d uint64) error {
	_, err := s.WriteWait(stream, ready, r, done, d)
	return err
}

func TestASeamQueuesNothingOnAStreamThatCaptures(t *testing.T) {
	for _, met := range []bool{true, false} {
		t.Run(fmt.Sprint("met ", met), func(t *testing.T) {
			b := start(t, hiptest.Settings{})
			seam := b.d.Seam()
			if met {
				require.NoError(t, writeWait(seam, b.s.Raw(), b.words.Addr(0), 1, b.words.Addr(1), 0))
				require.NoError(t, b.s.Synchronize(within(t, bound)))
			}
			t.Cleanup(func() { b.words.Store(1, 9) }) // what a stream that was not asked waits for
			require.NoError(t, b.s.BeginCapture(hipgo.CaptureRelaxed))
			before := b.words.Load(0)
			captures, err := seam.WriteWait(b.s.Raw(), b.words.Addr(0), 7, b.words.Addr(1), 9)
			require.NoError(t, err)
			require.True(t, captures)
			graph, err := b.s.EndCapture()
			require.NoError(t, err, "nor is the capture spoilt")
			require.NoError(t, graph.Close())
			require.NoError(t, b.s.Synchronize(within(t, bound)), "nothing waits")
			assert.Equal(t, before, b.words.Load(0))
			require.NoError(t, b.Fail(hiptest.Fault{Call: "hipStreamIsCapturing", Code: 999}))
			require.ErrorContains(t, writeWait(seam, b.s.Raw(), b.words.Addr(0), 7, b.words.Addr(1), 9), "hipStreamIsCapturing")
		})
	}
}
