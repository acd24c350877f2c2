//go:build unix

package hipfabric

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestOpenCountsTheFilesThatAreThere(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	low := before
	low.Cur = 150
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	_, err := Open(t.Context(), configs(t, 64, nil)[0])
	assertOpenError(t, 0, err, fabric.ErrUnsupported)
	assert.ErrorContains(t, err, "rank 0 of World 64 needs 214 file descriptors; the limit is 150 and")
	assert.ErrorContains(t, err, "ulimit -n")
	opened(t, 1, nil)
}
