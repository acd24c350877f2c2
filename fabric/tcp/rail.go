package tcp

import (
	"sync"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

// rail is one way to a peer, and what went over it.
type rail struct {
	fabric.Rail

	mu   sync.Mutex
	live map[*link.Conn]link.Health // of the lanes that are up, as last seen
	gone fabric.RailStats           // of those that are not
}

func newRail(r fabric.Rail) *rail { return &rail{Rail: r, live: map[*link.Conn]link.Health{}} }

// opened takes a lane's connection in, seen notes how it is, and closed keeps its counters before it is closed.
func (r *rail) opened(c *link.Conn) { r.seen(c, link.Health{}) }

func (r *rail) seen(c *link.Conn, h link.Health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[c] = h
}

func (r *rail) closed(c *link.Conn) {
	h := c.Health()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, c)
	r.gone.Lost++
	count(&r.gone, c, h)
}

func count(s *fabric.RailStats, c *link.Conn, h link.Health) {
	sb, rb, sf, rf := c.Counts()
	s.SentBytes += sb
	s.ReceivedBytes += rb
	s.SentFrames += sf
	s.ReceivedFrames += rf
	s.Retransmits += uint64(h.Retransmitted)
}

// stats reads the rail's counters.
func (r *rail) stats() fabric.RailStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.gone
	s.Name, s.Lanes = r.String(), len(r.live)
	for c, h := range r.live {
		count(&s, c, h)
		s.RoundTrip = max(s.RoundTrip, h.RoundTrip)
	}
	return s
}
