package roce

import (
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// counters have one writer.
type counters struct{ sentBytes, sentFrames, receivedBytes, receivedFrames atomic.Uint64 }

func (c *counters) sent(payload int) {
	c.sentBytes.Add(uint64(payload) + frame.Size)
	c.sentFrames.Add(1)
}

func (c *counters) received(payload int) {
	c.receivedBytes.Add(uint64(payload) + frame.Size)
	c.receivedFrames.Add(1)
}

// Stats reads the counters.
func (t *Transport) Stats() fabric.TransportStats {
	s := fabric.TransportStats{Kind: t.Kind(), Polls: t.polls.Load(), Parks: t.parks.Load()}
	for r := range t.peers {
		if r == t.rank {
			continue
		}
		ps := fabric.PeerStats{Peer: r}
		for _, l := range t.peers[r].lanes {
			rs := fabric.RailStats{Name: l.name, Lanes: 1, SentBytes: l.count.sentBytes.Load(), SentFrames: l.count.sentFrames.Load(),
				ReceivedBytes: l.count.receivedBytes.Load(), ReceivedFrames: l.count.receivedFrames.Load()}
			ps.Rails = append(ps.Rails, rs)
			ps.SentBytes += rs.SentBytes
			ps.SentFrames += rs.SentFrames
			ps.ReceivedBytes += rs.ReceivedBytes
			ps.ReceivedFrames += rs.ReceivedFrames
		}
		s.Peers = append(s.Peers, ps)
	}
	return s
}
