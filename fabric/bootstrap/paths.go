package bootstrap

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

const (
	pathFirst   = 100 * time.Millisecond // before a path is dialled, on average
	pathLongest = time.Second            // between attempts
)

// arrival is a further path on its way to the loop.
type arrival struct {
	peer int
	path *path
	out  *seal // of the frame that this end begins it with
}

// keepPaths has a control path on every rail to rank 0, dialled in the background.
func (s *Session) keepPaths() {
	if s.cfg.Rank == 0 || len(s.waysOf(0)) < 2 {
		return
	}
	lost := make([]chan error, len(s.waysOf(0)))
	for rail := range lost {
		lost[rail] = make(chan error, 1)
	}
	s.post(func() { s.lost = lost })
	for rail := range lost {
		s.wg.Go(func() { s.cfg.background(func() { s.keepPath(rail, lost[rail]) }) })
	}
}

// waysOf are those of the control connection to a rank; none before the ranks have met.
func (s *Session) waysOf(peer int) []way {
	if peer >= len(s.paths) {
		return nil
	}
	return s.paths[peer]
}

// keepPath dials the control path of one rail, the first of which is there, and again whenever it is lost.
func (s *Session) keepPath(rail int, lost <-chan error) {
	log := s.log.With("rail", s.paths[0][rail].String())
	var generation uint16
	wait, opened := pathFirst, time.Now()
	for there := rail == 0; ; there = true {
		if there && !s.awaitLoss(lost, func(err error) { log.Warn("a way of the control connection is lost; the others go on", "err", err) }) {
			return
		}
		if time.Since(opened) > pathStall+pathLongest {
			wait = pathFirst
		}
		for {
			pause(s.life, wait/2+mathrand.N(wait))
			if s.life.Err() != nil || s.hasLeft(0) {
				return
			}
			generation++
			err := s.dialPath(s.life, rail, generation)
			if err == nil {
				break
			}
			if errors.Is(err, fabric.ErrUnauthorized) {
				log.Warn("a way of the control connection is given up", "err", err)
				return
			}
			wait = min(2*wait, pathLongest)
		}
		opened = time.Now()
		if there {
			log.Info("a way of the control connection is back")
		}
	}
}

// awaitLoss says false when there is nothing to mend any more: a moment later, by when an end of the whole is known.
func (s *Session) awaitLoss(lost <-chan error, note func(error)) bool {
	select {
	case err := <-lost:
		pause(s.life, pathFirst)
		if s.life.Err() != nil || s.hasLeft(0) {
			return false
		}
		note(err)
		return true
	case <-s.life.Done():
	case <-s.over:
	}
	return false
}

// dialPath opens one path and hands it to the loop.
func (s *Session) dialPath(ctx context.Context, rail int, generation uint16) error {
	w := &s.paths[0][rail]
	d, to := net.Dialer{Timeout: dialTime, KeepAlive: -1}, w.to
	if rail == 0 {
		to = s.reached
	}
	if w.Interface != "" {
		d.Control = toDevice(w.Interface)
	}
	if w.Local.IsValid() && !w.Local.IsLinkLocalUnicast() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(w.Local, 0))
	}
	h := hello{version: s.cfg.version, role: rolePath, rank: uint16(s.cfg.Rank), generation: generation, rail: uint8(rail), session: s.ID(), group: s.group}
	c, x, r, err := s.dialBy(ctx, d, to, h)
	if err != nil {
		return err
	}
	if r.session != h.session {
		_ = c.Close()
		return fmt.Errorf("%w: it answers for another session", errStranger)
	}
	out, in, err := x.frames(r.session)
	if err == nil {
		err = s.arrive(c, arrival{0, &path{rail: rail, generation: generation, in: in}, out})
	}
	if err != nil {
		_ = c.Close()
	}
	return err
}

// takePath is rank 0's taking of a path that has been proven. The loop has the last word.
func (s *Session) takePath(c *net.TCPConn, h hello, x *exchange) error {
	s.mu.Lock()
	running := s.loop != nil && !s.closed
	s.mu.Unlock()
	if !running {
		return c.Close() // its dialer comes again
	}
	peer, rail := int(h.rank), int(h.rail)
	if peer < 1 || peer >= s.cfg.World || rail >= len(s.paths[peer]) {
		return fmt.Errorf("rank %d: a control path on rail %d, which there is not", peer, rail)
	}
	if w := &s.paths[peer][rail]; rail > 0 && addrOf(c.LocalAddr()) != w.Local {
		return fmt.Errorf("rank %d: a control path came by another way than its rail, %v", peer, w)
	}
	in, out, err := x.frames(s.ID())
	if err != nil {
		return err
	}
	return s.arrive(c, arrival{peer, &path{rail: rail, generation: h.generation, in: in}, out})
}

// arrive takes a connection's socket and hands it over. A further path is not worth the files that others need.
func (s *Session) arrive(c *net.TCPConn, a arrival) error {
	if err := s.cfg.checkFiles(sock.OpenFiles()); err != nil {
		return err
	}
	if err := errors.Join(c.SetDeadline(time.Time{}), sock.Tune(c, sock.Control)); err != nil {
		return err
	}
	fd, err := sock.Take(c)
	if fd < 0 {
		return err
	}
	a.path.fd = fd
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		a.path.close()
		return nil
	}
	s.arrived = append(s.arrived, a)
	s.queue = append(s.queue, func() { s.loop.adopt() })
	s.loop.p.wake()
	return nil
}
