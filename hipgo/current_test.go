package hipgo_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// elsewhere puts an engine on this thread, on device 1 and in a capture mode of its own, and gives what says that both are
// as they were.
func elsewhere(t *testing.T, rt *hipgo.Runtime) (still func(what string, err error)) {
	table := rt.Table()
	runtime.LockOSThread()
	require.Zero(t, table.SetCurrent(1))
	const strict = 1
	before, code := table.ExchangeCaptureMode(strict)
	require.Zero(t, code)
	t.Cleanup(func() {
		table.SetCurrent(0)
		table.ExchangeCaptureMode(before)
		runtime.UnlockOSThread()
	})
	return func(what string, err error) {
		t.Helper()
		require.NoError(t, err, what)
		mode, code := table.ExchangeCaptureMode(strict)
		require.Zero(t, code)
		assert.Equal(t, strict, mode, what)
		now, code := table.Current()
		require.Zero(t, code)
		assert.Equal(t, 1, now, what)
	}
}

func TestModulesEventsAndExportsLeaveTheThreadsDeviceAsItWas(t *testing.T) {
	b := start(t, hiptest.Settings{Devices: 2})
	registerTwins(t)
	still := elsewhere(t, b.Runtime())
	m, err := b.d.LoadModule(codeObject(t, machGfx1151, "fill"))
	still("load", err)
	fill, err := m.Function("fill")
	still("function", err)
	_, err = m.Function("absent")
	require.Error(t, err)
	still("a function that is not there", nil)
	args := append(append(number(uint64(b.words.Addr(0))), number(1)...), number(3)...)
	first, err := b.d.NewEvent(hipgo.EventDefault)
	still("event", err)
	last, err := b.d.NewEvent(hipgo.EventDefault)
	still("second event", err)
	still("record", first.Record(b.s))
	still("launch", b.s.Launch(fill, [3]int{1, 1, 1}, [3]int{1, 1, 1}, 0, args))
	still("second record", last.Record(b.s))
	b.drained(t)
	assert.Equal(t, uint64(3101), b.words.Load(0), "the kernel ran")
	_, err = last.Since(first)
	still("elapsed", err)
	memory, err := b.d.Malloc(4096)
	still("malloc", err)
	fd, _, err := b.d.ExportDMABuf(memory.Ptr(), memory.Len())
	still("export", err)
	require.NoError(t, os.NewFile(uintptr(fd), "dma-buf").Close())
	_, err = b.d.Attribute(hipgo.AttributeWarpSize)
	still("attribute", err)
	_, err = b.Runtime().Devices()
	still("devices", err)
	for what, c := range map[string]interface{ Close() error }{"module": m, "first": first, "last": last, "memory": memory} {
		still("close "+what, c.Close())
	}
}

func TestASeamLeavesTheThreadsDeviceAsItWas(t *testing.T) {
	b := start(t, hiptest.Settings{Devices: 2})
	registerTwins(t)
	still := elsewhere(t, b.Runtime())
	seam := b.d.Seam()
	module, functions, err := seam.Load(codeObject(t, machGfx1151, "fill"), "fill")
	still("load", err)
	seam.Clock()
	still("clock", nil)
	mem, at, err := seam.AllocHost(64)
	still("host", err)
	p, err := seam.AllocDevice(64)
	still("device", err)
	_, err = seam.Inspect(p, 64)
	still("inspect", err)
	stream, event, _, err := seam.OpenStream(false)
	still("stream", err)
	still("copy", seam.Copy(stream, p, at, 64))
	_, err = seam.WriteWait(stream, at, 1, at, 1)
	still("write+wait", err)
	still("launch", seam.Launch(stream, functions[0], 1, 1, append(append(number(uint64(at)), number(1)...), number(3)...)))
	still("record", seam.Record(stream, event))
	_, err = seam.Query(event)
	still("query", err)
	_, err = seam.Capturing(stream)
	still("capturing", err)
	require.NoError(t, b.d.WrapEvent(event).Synchronize(within(t, bound)))
	still("unload", seam.Unload(module))
	still("close stream", seam.CloseStream(stream, event))
	still("free device", seam.FreeDevice(p))
	still("free host", seam.FreeHost(mem))
}
