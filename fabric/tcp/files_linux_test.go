package tcp

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

func TestFileDescriptorsBoundTheLanes(t *testing.T) {
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	used, _ := sock.OpenFiles()
	few := was
	few.Cur = used + filesApart + 8 // the test's own listeners, and some lanes
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	for name, wrap := range map[string]func(*localMesh) Mesh{
		"beyond a host": func(m *localMesh) Mesh { return elsewhere{m, 1} },
		"within a host": func(m *localMesh) Mesh { return m },
	} {
		log := &record{said: make(chan struct{}, 1)}
		c := Config{Lanes: 32, Logger: slog.New(log)}
		ts := openEach(t, wrap, c, c)
		lanes := lanesTo(ts[0], 1)
		assert.Less(t, lanes, 9, name)
		assert.Positive(t, lanes, name)
		log.await(t, "fewer lanes than asked for: file descriptors are short; raise the limit with ulimit -n")
		for _, tr := range ts {
			assert.NoError(t, tr.Close())
		}
	}
}
