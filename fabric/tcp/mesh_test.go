package tcp

import (
	"bytes"
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
	rails       int
	meeting     *meeting
	alone       bool // the other ranks are in the test's hands, and say what this one wants to hear
}

// meeting is where the ranks of this process exchange their few bytes.
type meeting struct {
	mu    sync.Mutex
	world int
	blobs [][]byte
	got   int
	done  chan struct{}
}

func (m *meeting) gather(ctx context.Context, rank int, blob []byte) ([][]byte, error) {
	m.mu.Lock()
	if m.got == 0 {
		m.blobs, m.done = make([][]byte, m.world), make(chan struct{})
	}
	m.blobs[rank] = append([]byte{}, blob...)
	blobs, done := m.blobs, m.done
	if m.got++; m.got == m.world {
		m.got = 0
		close(done)
	}
	m.mu.Unlock()
	select {
	case <-done:
		return blobs, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func localMeshes(t testing.TB, world int) []*localMesh {
	t.Helper()
	meshes := make([]*localMesh, world)
	addrs := make([]string, world)
	met := &meeting{world: world}
	for r := range meshes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addrs[r] = l.Addr().String()
		meshes[r] = &localMesh{rank: r, world: world, addrs: addrs, listener: l, waiting: map[string]chan *net.TCPConn{}, rails: 1, meeting: met}
		go meshes[r].serve()
		t.Cleanup(func() { l.Close() })
	}
	return meshes
}

func (m *localMesh) Rank() int    { return m.rank }
func (m *localMesh) World() int   { return m.world }
func (m *localMesh) ID() [16]byte { return [16]byte{1, 2, 3} }

func (m *localMesh) Rails(int) []fabric.Rail {
	var rails []fabric.Rail
	for i := range m.rails {
		rails = append(rails, fabric.Rail{Index: i, Interface: fmt.Sprint("lo", i), SameHost: true})
	}
	return rails
}

func (m *localMesh) AllGather(ctx context.Context, blob []byte) ([][]byte, error) {
	if !m.alone {
		return m.meeting.gather(ctx, m.rank, blob)
	}
	all := make([][]byte, m.world)
	for r := range all {
		if all[r] = blob; len(blob) > 2 {
			all[r] = bytes.Repeat([]byte{0xff}, len(blob)) // every lane stands
		}
	}
	return all, nil
}

func (m *localMesh) serve() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		var b [3]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			c.Close()
			continue
		}
		m.slot(int(b[0]), int(b[1]), int(b[2])) <- c.(*net.TCPConn)
	}
}

func (m *localMesh) slot(peer, lane, generation int) chan *net.TCPConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(peer, lane, generation)
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
	_, err = c.Write([]byte{byte(m.rank), byte(lane.Index), byte(lane.Generation)})
	return c.(*net.TCPConn), err
}

// dialBack is a lane that rank 1 dials anew to this one.
func (m *localMesh) dialBack(lane, generation int) (*net.TCPConn, error) {
	c, err := net.Dial("tcp", m.addrs[m.rank])
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{1, byte(lane), byte(generation)})
	return c.(*net.TCPConn), err
}

func (m *localMesh) Accept(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error) {
	select {
	case c := <-m.slot(peer, lane.Index, lane.Generation):
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
