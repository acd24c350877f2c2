package driver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if text != "" {
			require.NoError(t, os.WriteFile(at, []byte(text+"\n"), 0o644))
		}
	}
	return root
}

func TestSlotsOfASparseTable(t *testing.T) {
	root := tree(t, map[string]string{
		"1/link_layer": "Ethernet", "2/link_layer": "InfiniBand",
		"1/gid_attrs/types/0": "IB/RoCE v1", "1/gid_attrs/ndevs/0": "none0",
		"1/gid_attrs/types/3": "RoCE v2", "1/gid_attrs/ndevs/3": "none1",
		"1/gid_attrs/types/4": "RoCE v2", // and no address
		"2/gid_attrs/types/0": "IB/RoCE v1",
	})
	address := func(port, index int) [16]byte { return [16]byte{0: 0xfe, 14: byte(port), 15: byte(index)} }
	query := func(port, index int) ([16]byte, syscall.Errno) {
		if index == 4 {
			return [16]byte{}, 0
		}
		return address(port, index), 0
	}
	got, e := slots(root, []int{6, 1}, query)
	require.Zero(t, e)
	assert.Equal(t, []GID{
		{GID: address(1, 0), Port: 1, Index: 0, Type: 1, NetDev: "none0"},
		{GID: address(1, 3), Port: 1, Index: 3, Type: 2, NetDev: "none1"},
		{GID: address(2, 0), Port: 2, Index: 0, Type: 0},
	}, got)
	_, e = slots(root, []int{1}, func(int, int) ([16]byte, syscall.Errno) { return [16]byte{}, syscall.EIO })
	assert.Equal(t, syscall.EIO, e)
}

func TestAbsenceSaysWhatIsMissing(t *testing.T) {
	for says, files := range map[string]map[string]string{
		"no RDMA: modprobe ib_uverbs":                   {},
		"knows no HCA: load its driver":                 {"class/infiniband_verbs/abi_version": "6"},
		"the kernel has mlx5_0, and not what programs":  {"class/infiniband/mlx5_0/fw": "1"},
		"no provider for it: install ibverbs-providers": {"class/infiniband/mlx5_0/fw": "1", "class/infiniband_verbs/abi_version": "6"},
	} {
		assert.Contains(t, absence(tree(t, files)), says)
	}
}
