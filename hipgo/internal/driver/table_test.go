//go:build cgo && linux

package driver_test

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver/bare"
)

func TestEachRequiredEntryPointFailsByName(t *testing.T) {
	require.Greater(t, len(bare.Required()), 40)
	for _, name := range bare.Required() {
		_, err := bare.Table(name)
		var load *driver.LoadError
		require.ErrorAs(t, err, &load, name)
		assert.Equal(t, name, load.Symbol)
		assert.Equal(t, "bare", load.Library)
		assert.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, name)
	}
}

func TestWithoutAnOptionalEntryPointThereIsARuntime(t *testing.T) {
	symbols := map[string]driver.Symbol{
		"hipExtStreamCreateWithCUMask":       driver.SymbolCUMask,
		"hipThreadExchangeStreamCaptureMode": driver.SymbolCaptureMode,
		"hipMemGetAddressRange":              driver.SymbolAddressRange,
	}
	require.Subset(t, bare.Optional(), slices.Collect(maps.Keys(symbols)))
	for _, name := range bare.Optional() {
		table, err := bare.Table(name)
		require.NoError(t, err, name)
		for other, symbol := range symbols {
			assert.Equal(t, other != name, table.Has(symbol), "%s without %s", other, name)
		}
		assert.False(t, table.Has(driver.SymbolDMABuf))
	}
}

// The linker leaves an unknown C function at address 0, where only a call finds it.
func TestEveryCallOfATableHasItsC(t *testing.T) {
	table, err := bare.Table("")
	require.NoError(t, err)
	v := reflect.ValueOf(table)
	require.Greater(t, v.NumMethod(), 40)
	for i := range v.NumMethod() {
		m := v.Method(i)
		zeros := make([]reflect.Value, m.Type().NumIn())
		for j := range zeros {
			zeros[j] = reflect.Zero(m.Type().In(j))
		}
		results := m.Call(zeros)
		if last := results[len(results)-1]; len(results) > 1 {
			name := v.Type().Method(i).Name
			want := map[string]int64{"Arch": 801, "ExportDMABuf": 801, "ModuleLoad": 1}[name]
			assert.Equal(t, want, last.Int(), name)
		}
	}
}

func TestHotCallsAllocateNothing(t *testing.T) {
	table, err := bare.Table("")
	require.NoError(t, err)
	args, sizes := make([]byte, 128), make([]uint32, 1)
	for name, call := range map[string]func(){
		"write+wait": func() { table.WriteWait(0, 1, 8, 1, 16, 1, false) },
		"wait":       func() { table.Wait64(0, 1, 8, 1, 0, 1) },
		"write":      func() { table.Write64(0, 1, 8, 1) },
		"copy":       func() { table.Copy(0, 1, 8, 16, 8, 4) },
		"record":     func() { table.EventRecord(0, 1, 2) },
		"query":      func() { table.EventQuery(0, 1) },
		"capturing":  func() { table.StreamCapturing(0, 1) },
		"launch":     func() { table.Launch(0, 1, 2, driver.Dims{}, args, sizes) },
		"graph":      func() { table.GraphLaunch(0, 1, 2) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, call), name)
	}
}

func TestAModuleHasAnImageOfItsOwn(t *testing.T) {
	table, err := bare.Table("")
	require.NoError(t, err)
	image := bytes.Repeat([]byte{7}, 5000)
	module, kept, code := table.ModuleLoad(0, image)
	require.Zero(t, code)
	assert.Equal(t, uintptr(kept), module, "the runtime was given the copy")
	assert.Zero(t, module%4096)
	clear(image)
	copied := unsafe.Slice((*byte)(kept), 8192)
	assert.Equal(t, bytes.Repeat([]byte{7}, 5000), copied[:5000])
	assert.Equal(t, make([]byte, 3192), copied[5000:], "a text ends")
	require.Zero(t, table.ModuleUnload(0, module, kept))
}

func TestALaunchIsBoundedInC(t *testing.T) {
	table, err := bare.Table("")
	require.NoError(t, err)
	for _, sizes := range [][]uint32{{4097}, {4000, 97}, {1, 1 << 31}, make([]uint32, 65)} {
		assert.Equal(t, 1, table.Launch(0, 0, 0, driver.Dims{}, make([]byte, 4096), sizes), sizes)
	}
	assert.Zero(t, table.Launch(0, 0, 0, driver.Dims{}, make([]byte, 4096), []uint32{4000, 96}))
}

// The bar is in docs/performance.md: a crossing costs at most 1.3 times the bare one.
func BenchmarkCrossing(b *testing.B) {
	table, err := bare.Table("")
	require.NoError(b, err)
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bare.Call(0, 1, 8, 1, 16, 1)
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			table.Write64(0, 1, 8, 1)
		}
	})
	b.Run("write+wait", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			table.WriteWait(0, 1, 8, 1, 16, 1, false)
		}
	})
	b.Run("query", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			table.EventQuery(0, 1)
		}
	})
}
