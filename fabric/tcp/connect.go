package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

const (
	// probeTime is how long a rail other than the base has to carry its first connections; a dead one is left out.
	probeTime = 3 * time.Second
	// filesApart are descriptors left to the rest of the process when lanes are many.
	filesApart = 64
)

// opening is the connections of one Open, before they are the transport's.
type opening struct {
	t       *Transport
	m       Mesh
	mu      sync.Mutex
	sockets map[*lane]*net.TCPConn
}

// connect agrees with every peer on the lanes, opens them, and keeps those that stand at both ends.
func (t *Transport) connect(ctx context.Context, m Mesh, lanes, generation int) error {
	if err := t.agreeLanes(ctx, m, lanes, generation); err != nil {
		return err
	}
	o := &opening{t: t, m: m, sockets: map[*lane]*net.TCPConn{}}
	if err := o.all(ctx); err != nil {
		o.close()
		return err
	}
	if err := o.keepCommon(ctx); err != nil {
		o.close()
		return err
	}
	for r := range t.peers {
		f := &t.peers[r]
		for _, l := range f.lanes {
			s := o.sockets[l]
			if s == nil {
				continue
			}
			delete(o.sockets, l)
			if err := t.raise(f, l, s); err != nil {
				o.close()
				return err
			}
		}
	}
	return nil
}

// agreeLanes fixes how many lanes each pair has: the smaller of its ends' numbers, at least one a rail.
func (t *Transport) agreeLanes(ctx context.Context, m Mesh, asked, generation int) error {
	within, beyond := asked, asked
	if asked == 0 {
		within, beyond = 1, DefaultLanes
	}
	most, n := t.affordable(), 0
	for r := range t.peers {
		switch {
		case r == t.rank:
		case m.Rails(r)[0].SameHost:
			n = max(n, within)
		default:
			n = max(n, beyond)
		}
	}
	if n > most {
		t.c.Logger.Warn("fewer lanes than asked for: file descriptors are short; raise the limit with ulimit -n", "lanes", most, "asked", n)
	}
	blob := []byte{uint8(min(within, most)), uint8(min(beyond, most))}
	all, err := m.AllGather(ctx, blob)
	if err != nil {
		return err
	}
	for r := range t.peers {
		if r == t.rank {
			continue
		}
		if len(all[r]) != len(blob) {
			return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: r, From: -1, Text: fmt.Sprintf("rank %d says its lanes in %d bytes, not %d", r, len(all[r]), len(blob))}
		}
		rails := m.Rails(r)
		kind := 1
		if rails[0].SameHost {
			kind = 0
		}
		lanes := max(min(int(all[r][kind]), int(blob[kind])), len(rails))
		t.peers[r].shape(rails, min(lanes, MaxLanes), generation)
		if lanes > 1 {
			t.needMender(m)
		}
	}
	return nil
}

// affordable is how many lanes a peer the process's descriptors allow.
func (t *Transport) affordable() int {
	used, limit := sock.OpenFiles()
	if limit < used+filesApart {
		return 1
	}
	return int(min(max((limit-used-filesApart)/uint64(t.world-1), 1), MaxLanes))
}

func (t *Transport) needMender(m Mesh) {
	if t.mend == nil {
		t.newMender(m)
	}
}

// shape gives the pair its rails, and lanes spread evenly over them.
func (f *peer) shape(rails []fabric.Rail, lanes, generation int) {
	for _, r := range rails {
		f.rails = append(f.rails, newRail(r))
	}
	for i := range lanes {
		f.lanes = append(f.lanes, &lane{index: i, rail: f.rails[i%len(f.rails)], generation: generation, died: generation - 1})
	}
	f.wide = lanes > 1
}

// all opens this rank's lanes at once. A failure on the base rail of any pair ends the others; another rail is left out.
func (o *opening) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, o.t.world)
	var wg sync.WaitGroup
	for r := range o.t.peers {
		f := &o.t.peers[r]
		for _, l := range f.lanes {
			wg.Go(func() {
				if err := o.one(ctx, f, l); err != nil {
					o.mu.Lock()
					errs[r] = errors.Join(errs[r], err)
					o.mu.Unlock()
					cancel()
				}
			})
		}
	}
	wg.Wait()
	return firstCause(errs)
}

// one opens a lane, within probeTime beyond the base rail.
func (o *opening) one(ctx context.Context, f *peer, l *lane) error {
	open, limit := o.m.Accept, probeTime+time.Second
	if f.Peer < o.t.rank {
		open, limit = o.m.Dial, probeTime
	}
	probe := ctx
	if l.rail.Index > 0 {
		var cancel context.CancelFunc
		probe, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s, err := open(probe, f.Peer, fabric.Lane{Channel: o.t.c.Channel, Index: l.index, Rail: l.rail.Index, Generation: l.generation})
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.sockets[l] = s
		return nil
	case l.rail.Index > 0 && ctx.Err() == nil && probe.Err() != nil:
		l.why = err
		return nil
	default:
		return err
	}
}

// keepCommon drops the lanes that stand at one end only, and names the rails that carry none.
func (o *opening) keepCommon(ctx context.Context) error {
	mine := make([]byte, 8*o.t.world)
	for r := range o.t.peers {
		var set uint64
		for _, l := range o.t.peers[r].lanes {
			if o.sockets[l] != nil {
				set |= 1 << l.index
			}
		}
		binary.LittleEndian.PutUint64(mine[8*r:], set)
	}
	all, err := o.m.AllGather(ctx, mine)
	if err != nil {
		return err
	}
	for r := range o.t.peers {
		f := &o.t.peers[r]
		if r == o.t.rank {
			continue
		}
		if len(all[r]) != len(mine) {
			return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: r, From: -1, Text: fmt.Sprintf("rank %d tells of its lanes in %d bytes, not %d", r, len(all[r]), len(mine))}
		}
		theirs := binary.LittleEndian.Uint64(all[r][8*o.t.rank:])
		standing := map[*rail]bool{}
		for _, l := range f.lanes {
			if s := o.sockets[l]; s != nil && theirs&(1<<l.index) == 0 {
				_ = s.Close()
				delete(o.sockets, l)
				l.why = fmt.Errorf("rank %d could not open it", r)
			}
			standing[l.rail] = standing[l.rail] || o.sockets[l] != nil
		}
		for _, l := range f.lanes {
			if !standing[l.rail] {
				o.t.c.Logger.Warn("rail is dead; the group goes on without it", "peer", r, "rail", l.rail.String(), "err", l.why)
				standing[l.rail] = true // said
			}
		}
	}
	return nil
}

func (o *opening) close() {
	for _, s := range o.sockets {
		_ = s.Close()
	}
}

// firstCause prefers an error that is not the consequence of another's cancel.
func firstCause(errs []error) error {
	var consequence error
	for p, err := range errs {
		if err == nil {
			continue
		}
		err = fmt.Errorf("data connection to rank %d: %w", p, err)
		if !errors.Is(err, context.Canceled) {
			return err
		}
		consequence = err
	}
	return consequence
}

// raise moves a lane's socket out of the runtime's poller into the group, which owns it from then on.
func (t *Transport) raise(f *peer, l *lane, s *net.TCPConn) error {
	options := sock.Options{Buffer: t.c.SocketBuffer}
	if f.wide {
		options.Unsent = unsentBytes
	}
	if err := errors.Join(sock.Tune(s, sock.Data), sock.Limit(s, options)); err != nil {
		_ = s.Close()
		if clamped := (*sock.ClampedError)(nil); errors.As(err, &clamped) {
			return fabric.Invalidf("SocketBuffer is %d; the system allows %d: raise net.core.wmem_max and net.core.rmem_max by sysctl, or leave it at 0",
				clamped.Asked, clamped.Got)
		}
		return err
	}
	fd, err := sock.Take(s)
	if fd < 0 {
		return err
	}
	conn, err := t.group.Add(fd)
	if err != nil {
		return err
	}
	l.conn, l.why, l.held, l.raised = conn, nil, false, time.Now()
	l.rail.opened(conn)
	f.Window = window(t.c.Window, l.rail.SameHost)
	f.up++
	return nil
}

// unsentBytes bounds what a lane takes beyond what its network does: a slow one must not hold what others could send.
const unsentBytes = 128 << 10

func window(setting int, sameHost bool) int {
	switch {
	case setting > 0:
		return setting
	case setting == 0 && sameHost:
		return DefaultWindow
	default:
		return 0
	}
}
