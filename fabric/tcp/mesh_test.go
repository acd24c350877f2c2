package tcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// localMesh is a Mesh without secrets: enough to test the transport alone.
type localMesh struct {
	rank, world int
	addrs       []string
	listener    net.Listener
	mu          sync.Mutex
	waiting     map[string]chan *net.TCPConn
}

func localMeshes(t testing.TB, world int) []*localMesh {
	t.Helper()
	meshes := make([]*localMesh, world)
	addrs := make([]string, world)
	for r := range meshes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addrs[r] = l.Addr().String()
		meshes[r] = &localMesh{rank: r, world: world, addrs: addrs, listener: l, waiting: map[string]chan *net.TCPConn{}}
		go meshes[r].serve()
		t.Cleanup(func() { l.Close() })
	}
	return meshes
}

func (m *localMesh) Rank() int    { return m.rank }
func (m *localMesh) World() int   { return m.world }
func (m *localMesh) ID() [16]byte { return [16]byte{1, 2, 3} }

func (m *localMesh) Rails(int) []fabric.Rail { return []fabric.Rail{{SameHost: true}} }

func (m *localMesh) AllGather(context.Context, []byte) ([][]byte, error) {
	return make([][]byte, m.world), nil
}

func (m *localMesh) serve() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		var b [2]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			c.Close()
			continue
		}
		m.slot(int(b[0]), int(b[1])) <- c.(*net.TCPConn)
	}
}

func (m *localMesh) slot(peer, lane int) chan *net.TCPConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(peer, lane)
	if m.waiting[key] == nil {
		m.waiting[key] = make(chan *net.TCPConn, 1)
	}
	return m.waiting[key]
}

func (m *localMesh) Dial(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.addrs[peer])
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{byte(m.rank), byte(lane.Index)})
	return c.(*net.TCPConn), err
}

func (m *localMesh) Accept(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error) {
	select {
	case c := <-m.slot(peer, lane.Index):
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open opens a world of transports at once.
func open(t testing.TB, world int, c Config) []*Transport {
	t.Helper()
	ts := make([]*Transport, world)
	errs := make([]error, world)
	var wg sync.WaitGroup
	for r, m := range localMeshes(t, world) {
		wg.Go(func() { ts[r], errs[r] = Open(context.Background(), m, c) })
	}
	wg.Wait()
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
		t.Cleanup(func() { ts[r].Close() })
	}
	return ts
}
