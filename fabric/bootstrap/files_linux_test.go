package bootstrap

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

func TestTooFewFileDescriptorsAreNamed(t *testing.T) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = 3 // fewer than are open already: not one more can be
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	var errs []error
	for _, c := range withMaster(configs(t, 2), "127.0.0.1:29999") {
		_, err := Join(testContext(t), c)
		errs = append(errs, err)
		s := newSession(c.withDefaults())
		// What Join would meet had the files run out after it had counted them.
		_, _, _, err = s.dial(testContext(t), addrPorts(c.Master)[0], controlHello())
		errs = append(errs, s.cfg.filesOr(err), s.cfg.filesOr(s.listen(testContext(t), addrPorts(c.Master)[0].Addr())))
		_, err = newPoller()
		errs = append(errs, s.cfg.filesOr(err))
		s.end()
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	for i, err := range errs {
		assert.ErrorIs(t, err, fabric.ErrUnsupported, "%d", i)
		rank, need := i/4, []string{"90", "26"}[i/4]
		assert.ErrorContains(t, err, fmt.Sprintf("rank %d of World 2 needs %s file descriptors; the limit is 3 and", rank, need), "%d", i)
		assert.ErrorContains(t, err, "raise it with: ulimit -n ", "%d", i)
	}
}

func TestTheFilesOfARankAreCounted(t *testing.T) {
	c := Config{Rank: 0, World: 64}
	need := c.filesNeeded()
	assert.Equal(t, uint64(24+2*63+64), need)
	require.NoError(t, c.checkFiles(10, need+10))
	err := c.checkFiles(11, need+10)
	require.ErrorIs(t, err, fabric.ErrUnsupported)
	assert.ErrorContains(t, err, "rank 0 of World 64 needs 214 file descriptors; the limit is 224 and 11 are in use; raise it with: ulimit -n 225")
	c.Rank = 1
	assert.Equal(t, uint64(24+63+1), c.filesNeeded())
	used, limit := sock.OpenFiles()
	assert.Greater(t, used, uint64(2))
	assert.Greater(t, limit, used)
}
