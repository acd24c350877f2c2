package bootstrap

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// cable stands between a rank and rank 0: what dials it is passed on, until it is pulled out or cut.
type cable struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond
	out   bool // bytes wait
	cut   bool // connections end, and none is taken
	conns map[net.Conn]struct{}
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{l: l, to: to, conns: map[net.Conn]struct{}{}}
	c.moved = sync.NewCond(&c.mu)
	c.wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.carry(near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.set(false, true)
		c.wg.Wait()
	})
	return c
}

// set pulls the cable out, or puts it in, or cuts it.
func (c *cable) set(out, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.cut = out, cut
	if cut {
		for conn := range c.conns {
			_ = conn.Close()
		}
	}
	c.moved.Broadcast()
}

// keep closes conn now or when the cable is cut.
func (c *cable) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = conn.Close()
		return false
	}
	c.conns[conn] = struct{}{}
	return true
}

func (c *cable) carry(near net.Conn) {
	defer near.Close()
	if !c.keep(near) || !c.passes() {
		return
	}
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	if !c.keep(far) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.copy(far, near) })
	both.Go(func() { c.copy(near, far) })
	both.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, near)
	delete(c.conns, far)
}

func (c *cable) passes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.out && !c.cut {
		c.moved.Wait()
	}
	return !c.cut
}

func (c *cable) copy(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if !c.passes() {
			return
		}
		if _, werr := to.Write(b[:n]); werr != nil {
			_ = from.Close()
			return
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.TCPConn).CloseWrite()
			} else {
				_ = to.Close()
			}
			return
		}
	}
}

// overCables are the configurations of ranks that each reach rank 0 by two cables; those of a rail are one cable.
func overCables(t *testing.T, world int) ([]Config, []*cable) {
	zero := freePort(t)
	cables := []*cable{newCable(t, zero), newCable(t, zero)}
	return byTwoWays(t, world, zero, cables[0].l.Addr().String(), cables[1].l.Addr().String()), cables
}

// byTwoWays are those of ranks that reach rank 0 at two addresses.
func byTwoWays(t *testing.T, world int, zero, first, second string) []Config {
	all := configs(t, world)
	here := netip.MustParseAddr("127.0.0.1")
	for r := range all {
		all[r].Master = zero
		if r > 0 {
			all[r].Master = first
		}
		all[r].ways = func(places []place, me, peer int) []way {
			ways := waysTo(places, me, peer)[:1]
			if me*peer == 0 {
				ways[0].Local, ways[0].Remote = here, here
				ways = append(ways, way{Rail: fabric.Rail{Index: 1, Local: here, Remote: here}, to: netip.MustParseAddrPort(second), cable: true})
			}
			return ways
		}
	}
	return all
}
