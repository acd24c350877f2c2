//go:build cgo && linux && !noverbs

package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/internal/fakeverbs"
)

func build(t *testing.T, devices int, less ...string) string {
	t.Helper()
	path, err := fakeverbs.Build("../fakeverbs", t.TempDir(), devices, less...)
	if errors.Is(err, fakeverbs.ErrTools) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return path
}

func refused(t *testing.T, err error, library, symbol string) {
	t.Helper()
	var load *LoadError
	require.ErrorAs(t, err, &load)
	assert.Equal(t, library, load.Library)
	assert.Equal(t, symbol, load.Symbol)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, library)
}

func TestEachRequiredEntryPointIsMissedByNameAndVersion(t *testing.T) {
	for _, symbol := range fakeverbs.Required() {
		t.Run(symbol, func(t *testing.T) {
			name, _, _ := strings.Cut(symbol, "@")
			path := build(t, 1, name)
			_, err := Load(path)
			refused(t, err, path, symbol)
			assert.ErrorContains(t, err, "lacks "+symbol)
		})
	}
}

func TestALibraryWithoutWhatIsOptionalWillDo(t *testing.T) {
	all := build(t, 1)
	table, err := Load(all)
	require.NoError(t, err)
	assert.Equal(t, all, table.Library())
	again, err := Load(all)
	require.NoError(t, err)
	assert.Equal(t, table.(*Library).c, again.(*Library).c, "one table a library")
	for of, symbol := range map[Symbol]string{
		SymbolDeviceIndex: "ibv_get_device_index", SymbolGIDTable: "_ibv_query_gid_table", SymbolRegisterOrd: "ibv_reg_mr_iova2",
		SymbolDMABuf: "ibv_reg_dmabuf_mr", SymbolDataInOrder: "ibv_query_qp_data_in_order",
	} {
		assert.True(t, table.Has(of), symbol)
		without, err := Load(build(t, 1, symbol))
		require.NoError(t, err)
		assert.False(t, without.Has(of), symbol)
	}
	assert.False(t, table.Has(-1))
}

// Under IBVERBS_1.0 the same names have other layouts, and a plain dlsym would find them.
func TestAnEntryPointOfAnOldVersionIsNone(t *testing.T) {
	for _, symbol := range []string{"ibv_query_device", "ibv_create_qp", "ibv_query_pkey"} {
		path := build(t, 1, symbol+"@IBVERBS_1.0")
		_, err := Load(path)
		refused(t, err, path, symbol+"@IBVERBS_1.1")
	}
	libc, err := Load("libc.so.6")
	require.Nil(t, libc)
	refused(t, err, "libc.so.6", "ibv_get_device_list@IBVERBS_1.1")
}

func TestWhatIsNoLibraryIsRefusedByFile(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "libibverbs.so.1")
	_, err := Load(absent)
	refused(t, err, absent, "")
	assert.ErrorContains(t, err, "No such file")
	assert.NotContains(t, err.Error(), "install", "who names a file has one")
	require.NoError(t, os.WriteFile(absent, []byte("no library\n"), 0o644))
	_, err = Load(absent)
	refused(t, err, absent, "")
	assert.ErrorContains(t, err, "file too short")
}
