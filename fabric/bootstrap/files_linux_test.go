package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTooFewFileDescriptorsAreNamed(t *testing.T) {
	all := configs(t, 2)
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 3 // fewer than are open already: not one more can be
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	_, leadErr := Join(testContext(t), withMaster(configs(t, 2), "127.0.0.1:29999")[0])
	_, followErr := Join(testContext(t), withMaster(all, "127.0.0.1:29999")[1])
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	for _, err := range []error{leadErr, followErr} {
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, "ulimit -n")
	}
}
