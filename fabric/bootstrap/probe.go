package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hipfabric/hipfabric/fabric/internal/rail"
)

// probeTime bounds what Dial adds to its context's deadline to find out why a rail does not answer.
const probeTime = time.Second

// onRail names a lane's rail for an error; "" for the first.
func (s *Session) onRail(l lane) string {
	if l.Rail == 0 {
		return ""
	}
	return fmt.Sprintf(" on rail %d (%v)", l.Rail, s.ways[l.peer][l.Rail])
}

// link says why nothing can pass on a rail's interface here.
func (s *Session) link(l lane) string {
	if w := s.ways[l.peer][l.Rail]; l.Rail > 0 && w.Interface != "" {
		if reason := rail.Look(w.Interface); reason != "" {
			return "; here " + reason
		}
	}
	return ""
}

// why says what is wrong with a rail that did not answer in time: its interface has no link, or its cable leads to the
// interface of another rail.
func (s *Session) why(ctx context.Context, l lane) string {
	if l.Rail == 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) || s.life.Err() != nil {
		return ""
	}
	if reason := s.link(l); reason != "" {
		return reason
	}
	i := s.crossed(l)
	if i >= 0 {
		mine, other := s.ways[l.peer][l.Rail], s.ways[l.peer][i]
		device := func(w way) string { return s.places[l.peer].find(w.Remote).device }
		return fmt.Sprintf("; the cable on %s here leads to %s (%v) of rank %d, not to %s: the cables are crossed",
			mine.Interface, device(other), other.Remote, l.peer, device(mine))
	}
	return s.link(l) // the system may take a second to notice
}

// crossed looks for the peer's listener of another rail behind this rail's interface, and gives that rail or -1. The
// probes go one by one, on the caller's thread, whose network namespace they need.
func (s *Session) crossed(l lane) int {
	ways := s.ways[l.peer]
	mine := ways[l.Rail]
	for i, other := range ways {
		if i == l.Rail || !other.Local.IsValid() || other.Local.IsLinkLocalUnicast() || !other.to.IsValid() {
			continue
		}
		ctx, cancel := context.WithTimeout(s.life, probeTime/time.Duration(len(ways)))
		// The other rail's own address as the source: a far end that checks where sources should come from lets it pass.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: other.Local.AsSlice()}, Control: toDevice(mine.Interface), KeepAlive: -1}
		h := hello{version: s.cfg.version, role: roleData, rank: uint16(s.cfg.Rank), peer: uint16(l.peer), rail: uint8(i), session: s.ID(), group: s.group}
		c, err := s.dialData(ctx, d, other.to, h)
		cancel()
		if err == nil {
			_ = c.Close()
			return i
		}
	}
	return -1
}
