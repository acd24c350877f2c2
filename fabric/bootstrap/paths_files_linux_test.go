package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// A further way is an addition: it leaves the files that data connections will need.
func TestAFurtherWayTakesNoFilesThatOthersNeed(t *testing.T) {
	all, cables := overCables(t, 2)
	cables[1].set(false, true)
	s := group(t, all)
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	used, _ := sock.OpenFiles()
	few := was
	few.Cur = used + s[0].cfg.filesNeeded() - 5 // the test's own end of the cable takes four
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	cables[1].set(false, false)
	pause(testContext(t), 10*pathFirst)
	assert.Equal(t, []int{0}, rails(s[0]))
	talk(t, s, "one")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	eachHas(t, 2, s...)
}
