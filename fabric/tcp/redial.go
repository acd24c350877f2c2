package tcp

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/hipfabric/hipfabric/fabric"
)

// dial is a lane that is to be dialled anew, or accepted.
type dial struct {
	f      *peer
	l      *lane
	name   fabric.Lane
	cancel context.CancelFunc
}

// arrival is one that was.
type arrival struct {
	f    *peer
	l    *lane
	name fabric.Lane
	conn *net.TCPConn
}

// redial begins what is wanted and not under way, and ends what is no longer.
func (m *mender) redial() {
	m.mu.Lock()
	defer m.mu.Unlock()
	current := map[*lane]bool{}
	for _, w := range m.wanted {
		current[w.l] = true
		if d, ok := m.dials[w.l]; ok {
			if d.name == w.name {
				continue
			}
			d.cancel()
		}
		ctx, cancel := context.WithCancel(m.life)
		w.cancel = cancel
		m.dials[w.l] = w
		m.wg.Go(func() { m.dialAnew(ctx, w) })
	}
	for l, d := range m.dials {
		if !current[l] {
			d.cancel()
			delete(m.dials, l)
		}
	}
}

func (m *mender) dialAnew(ctx context.Context, d dial) {
	open := m.mesh.Accept
	if d.f.Peer < m.mesh.Rank() {
		open = m.mesh.Dial
	}
	conn, err := open(ctx, d.f.Peer, d.name)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil && ctx.Err() == nil:
		m.arrived = append(m.arrived, arrival{d.f, d.l, d.name, conn})
		select {
		case m.now <- struct{}{}:
		default:
		}
	case err == nil:
		_ = conn.Close()
	case ctx.Err() == nil && !errors.Is(err, fabric.ErrPeerFailed) && !errors.Is(err, fabric.ErrUnauthorized):
		if m.dials[d.l].name == d.name {
			delete(m.dials, d.l) // for the next look to begin again
		}
		m.notes = append(m.notes, note{level: slog.LevelWarn, text: "rail cannot be dialled anew yet", f: d.f, rail: d.l.rail.String(), why: err})
	}
}

// close ends it all, and the connections that nobody took.
func (m *mender) close() {
	m.end()
	m.wg.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.arrived {
		_ = a.conn.Close()
	}
	m.arrived = nil
}

// adopt takes a lane that was dialled anew into its place.
func (t *Transport) adopt(a arrival) {
	l := a.l
	if l.conn != nil || a.name.Generation <= l.generation || a.f.up == 0 {
		_ = a.conn.Close()
		return
	}
	l.generation = a.name.Generation
	if err := t.raise(a.f, l, a.conn); err != nil {
		l.why = err
		return
	}
	l.announce = 0
	for _, other := range a.f.lanes {
		if other != l && other.died >= 0 {
			l.announce |= 1 << other.index
		}
	}
	t.note(slog.LevelWarn, "rail is back", a.f, l)
}
