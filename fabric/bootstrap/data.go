package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// maxParked bounds the proven data connections of one rank that nobody has asked for yet.
const maxParked = 128

// lane names one data connection of this rank.
type lane struct {
	peer int
	fabric.Lane
}

type parked struct{ conn *net.TCPConn }

func (s *Session) laneOf(op string, peer int, l fabric.Lane) (lane, error) {
	switch {
	case peer < 0 || peer >= s.cfg.World || peer == s.cfg.Rank:
		return lane{}, s.opError(op, fabric.Invalidf("peer is %d; another rank of 0 to %d is needed", peer, s.cfg.World-1))
	case l.Channel == "" || len(l.Channel) > channelSize:
		return lane{}, s.opError(op, fabric.Invalidf("channel is %q; 1 to %d bytes are needed", l.Channel, channelSize))
	case l.Index < 0 || l.Index > 0xffff:
		return lane{}, s.opError(op, fabric.Invalidf("lane is %d; 0 to 65535 is needed", l.Index))
	case l.Generation < 0 || l.Generation > 0xffff:
		return lane{}, s.opError(op, fabric.Invalidf("generation is %d; 0 to 65535 is needed", l.Generation))
	case l.Rail < 0 || l.Rail >= len(s.Rails(peer)):
		return lane{}, s.opError(op, fabric.Invalidf("rail is %d; rank %d is reached by rails 0 to %d", l.Rail, peer, len(s.Rails(peer))-1))
	}
	return lane{peer, l}, nil
}

// Dial opens an authenticated data connection to a lower rank, which must Accept the same channel and lane. It retries
// until ctx ends, and ends by the group's failure, by Close (ErrClosed) or, at once, by ErrUnauthorized; ErrPeerFailed,
// which fails the group unless Generation is above 0, when the rank has left: a lane that is dialled anew is no call's. The
// caller owns the connection, whose socket has the options of data.
// A rail above 0 is dialled on its own interface alone; when ctx's deadline ends that, finding out why may take up to
// probeTime more, and the error says what is seen: no link, or crossed cables.
func (s *Session) Dial(ctx context.Context, peer int, l fabric.Lane) (*net.TCPConn, error) {
	to, err := s.laneOf("dial", peer, l)
	if err == nil && peer > s.cfg.Rank {
		err = s.opError("dial", fabric.Invalidf("peer is %d: rank %d accepts from higher ranks and dials lower ones", peer, s.cfg.Rank))
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	h := hello{version: s.cfg.version, role: roleData, rank: uint16(s.cfg.Rank), peer: uint16(peer), lane: uint16(l.Index), generation: uint16(l.Generation), rail: uint8(l.Rail),
		session: s.ID(), group: s.group}
	copy(h.channel[:], l.Channel)
	began, wait := time.Now(), firstPause
	var seen sighting
	for {
		d, addresses := s.wayTo(to)
		for _, a := range addresses {
			c, err := s.dialData(ctx, d, a, h)
			if err == nil {
				return c, nil
			}
			if cause := (*fabric.Cause)(nil); errors.As(err, &cause) || tooManyFiles(err) {
				return nil, s.opError("dial", s.cfg.filesOr(err))
			}
			if !overdue(ctx) || seen.last == nil {
				seen.note(fmt.Errorf("%v: %w", a, err))
			}
		}
		if s.hasLeft(peer) {
			if l.Generation > 0 {
				return nil, s.opError("dial", leftCause(peer))
			}
			return nil, s.opError("dial", s.Report(leftCause(peer)))
		}
		if wait = backOff(ctx, wait); ctx.Err() != nil {
			return nil, s.dialEnded(ctx, peer, fmt.Sprintf("no data connection to rank %d%s in %v; %v%s", peer, s.onRail(to), time.Since(began).Round(time.Millisecond), &seen, s.why(ctx, to)))
		}
	}
}

func (s *Session) hasLeft(rank int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left&(1<<rank) != 0
}

func (s *Session) dialEnded(ctx context.Context, peer int, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.gone("dial"); err != nil {
		return err
	}
	return s.opError("dial", endedBy(ctx, peer, s.cfg.Rank, text))
}

func (s *Session) dialData(ctx context.Context, d net.Dialer, a netip.AddrPort, h hello) (*net.TCPConn, error) {
	c, _, r, err := s.dialBy(ctx, d, a, h)
	if err != nil {
		return nil, err
	}
	if r.session != h.session {
		_ = c.Close()
		return nil, fmt.Errorf("%w: it answers for another session", errStranger)
	}
	if err := s.dataSocket(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (s *Session) dataSocket(c *net.TCPConn) error {
	return errors.Join(c.SetDeadline(time.Time{}), sock.Tune(c, sock.Data))
}

// Accept waits for the data connection that a higher rank dials for this channel, lane, rail and generation. It ends by ctx, by the
// group's failure or by Close (ErrClosed); ErrPeerFailed, which fails the group unless Generation is above 0, when
// the rank has left. The caller owns the connection, whose socket has the options of data.
func (s *Session) Accept(ctx context.Context, peer int, l fabric.Lane) (*net.TCPConn, error) {
	from, err := s.laneOf("accept", peer, l)
	if err == nil && peer < s.cfg.Rank {
		err = s.opError("accept", fabric.Invalidf("peer is %d: rank %d accepts from higher ranks and dials lower ones", peer, s.cfg.Rank))
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var c *net.TCPConn
	ready := func() bool {
		p, ok := s.parked[from]
		if !ok {
			return false
		}
		delete(s.parked, from)
		if gone(p.conn) {
			_ = p.conn.Close() // the dialer gave it up, and comes again
			return false
		}
		c = p.conn
		return true
	}
	missing := func() *fabric.Cause { return s.missing(1 << peer) }
	var left *fabric.Cause
	come, stuck := ready, missing
	if l.Generation > 0 {
		come, stuck = func() bool { left = missing(); return left != nil || ready() }, nil
	}
	for warned := false; ; warned = true {
		if err := s.await(ctx, "accept", come, stuck); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = s.opError("accept", endedBy(ctx, peer, s.cfg.Rank, fmt.Sprintf("no data connection from rank %d%s in %v%s", peer, s.onRail(from),
					time.Since(began).Round(time.Millisecond), s.link(from))))
			}
			return nil, err
		}
		if left != nil {
			return nil, s.opError("accept", left)
		}
		if s.cameBy(c, from) {
			return c, nil
		}
		if !warned {
			s.log.Warn("a data connection came by another way than its rail, and was refused", "peer", peer, "rail", s.ways[peer][l.Rail].String(), "addr", c.LocalAddr().String())
		}
		_ = c.Close()
	}
}

// park keeps a proven data connection until Accept asks for it. A newer one for the same lane is the dialer's retry.
func (s *Session) park(c *net.TCPConn, h hello) error {
	n := len(h.channel)
	for n > 0 && h.channel[n-1] == 0 {
		n--
	}
	k := lane{int(h.rank), fabric.Lane{Channel: string(h.channel[:n]), Index: int(h.lane), Rail: int(h.rail), Generation: int(h.generation)}}
	if k.peer <= s.cfg.Rank || k.peer >= s.cfg.World {
		return fmt.Errorf("rank %d dials rank %d, which accepts from %d to %d", k.peer, s.cfg.Rank, s.cfg.Rank+1, s.cfg.World-1)
	}
	if k.Channel == "" {
		return c.Close() // a probe, which has been answered
	}
	if err := s.dataSocket(c); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.cause.Load() != nil {
		return fmt.Errorf("rank %d dials a group that has ended", k.peer)
	}
	waiting := 0
	for other, old := range s.parked {
		if other.peer == k.peer {
			waiting++
		}
		if other.peer != k.peer || other.Channel != k.Channel || other.Index != k.Index {
			continue
		}
		if other.Generation > k.Generation || other == k && gone(c) {
			return c.Close() // given up, and its successor was faster here
		}
		_ = old.conn.Close()
		delete(s.parked, other)
		waiting--
	}
	if waiting >= maxParked {
		return fmt.Errorf("rank %d: %d data connections wait already", k.peer, waiting)
	}
	s.parked[k] = parked{c}
	s.notify()
	return nil
}
