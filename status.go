package hipfabric

import (
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// StatusSchema names the form of the document that a status socket serves.
const StatusSchema = "hipfabric.status/1"

// Status is what a running group says about itself. Rank 0 knows all ranks; another knows at least itself and rank 0.
type Status struct {
	Schema   string       `json:"schema"`
	Group    string       `json:"group"`
	Rank     int          `json:"rank"` // who says so
	World    int          `json:"world"`
	UptimeMs int64        `json:"uptime_ms"`
	Cause    string       `json:"cause,omitempty"` // why the group failed
	Paths    []Path       `json:"paths"`
	Ranks    []RankStatus `json:"ranks"`

	Calls           uint64      `json:"calls"` // completed by this rank, as Bytes and the rates are
	Failed          uint64      `json:"failed"`
	Bytes           uint64      `json:"bytes"` // contributed
	CallsPerSecond  float64     `json:"calls_per_second"`
	BytesPerSecond  float64     `json:"bytes_per_second"`
	RatesOverMs     int64       `json:"rates_over_ms"`     // how long the rates were measured
	InCallsFraction float64     `json:"in_calls_fraction"` // of that time, what was spent in calls
	Peers           []PeerBytes `json:"peers"`

	Device *DeviceStatus `json:"device,omitempty"` // this rank's calls on device memory; absent before Group.Device
}

// DeviceStatus is what a group's calls on device memory are at: the one whose stream has reached it, else the last one; Op is
// "" when there was none yet. A call that moves in parts is counted and shown by part.
type DeviceStatus struct {
	Gate       string `json:"gate"`   // "words" or "kernels"
	Device     string `json:"device"` // name, PCI id, HIP version and library
	Calls      uint64 `json:"calls"`  // completed
	Failed     uint64 `json:"failed"`
	Bytes      uint64 `json:"bytes"` // contributed
	Running    bool   `json:"running"`
	Op         string `json:"op"`
	Seq        uint64 `json:"seq"`
	Peer       int    `json:"peer"` // of a call between two; -1 elsewhere
	CallBytes  int    `json:"call_bytes"`
	CallAgeMs  int64  `json:"age_ms"`
	WaitingFor []int  `json:"waits_for"`
}

// RankStatus is what a rank is doing: the call in flight, else its last one; Op is "" when there was none yet.
type RankStatus struct {
	Rank           int     `json:"rank"`
	Host           string  `json:"host,omitempty"`
	State          string  `json:"state"`           // "ok", "left", "failed" or, where this rank hears nothing of it, "unknown"
	HeardMs        int64   `json:"heard_ms"`        // since its last sign of life; -1 when there was none
	Running        bool    `json:"running"`         // the call is in flight
	Op             string  `json:"op"`              // "all-gather"
	Group          string  `json:"group,omitempty"` // of that call, when it is one that this group was split into
	Seq            uint64  `json:"seq"`             // of that call, in the group's or the pair's order
	Peer           int     `json:"peer"`            // of a call between two; -1 elsewhere
	CallBytes      int     `json:"bytes"`           // of that call
	CallAgeMs      int64   `json:"age_ms"`          // since it began while it runs, since it ended afterwards
	WaitingFor     []int   `json:"waits_for"`       // ranks that the call waits for
	Calls          uint64  `json:"calls"`           // completed
	CallsPerSecond float64 `json:"calls_per_second"`
}

// Moved is what went one way and the other, headers included.
type Moved struct {
	SentBytes              uint64  `json:"sent_bytes"`
	ReceivedBytes          uint64  `json:"received_bytes"`
	SentBytesPerSecond     float64 `json:"sent_bytes_per_second"`
	ReceivedBytesPerSecond float64 `json:"received_bytes_per_second"`
}

// PeerBytes is what moved between this rank and a peer.
type PeerBytes struct {
	Peer int `json:"peer"`
	Moved
	Rails []RailBytes `json:"rails"` // of which Moved is the sum
}

// RailBytes is what moved over one way to a peer.
type RailBytes struct {
	Name  string `json:"name"`  // interface and both addresses
	Lanes int    `json:"lanes"` // connections that are up; 0 is a dead rail
	Lost  uint64 `json:"lost"`  // connections that died
	Moved
	Retransmits uint64  `json:"retransmits"`   // segments, sampled; 0 where the system does not say
	RoundTripUs float64 `json:"round_trip_us"` // smoothed, of the slowest lane; 0 where the system does not say
}

// rateWindow is how often the counters are sampled; rates are over one to two of it.
const rateWindow = time.Second

// sample is what rates are differences of.
type sample struct {
	at    time.Time
	stats fabric.Stats
	calls map[int]uint64 // of each rank
}

// rates keeps the last two samples.
type rates struct {
	mu          sync.Mutex
	older, last sample
}

func (r *rates) add(s sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.older, r.last = r.last, s
	if r.older.at.IsZero() {
		r.older = s
	}
}

// base is the sample to measure from.
func (r *rates) base() sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.older
}

// rate is a difference over time, 0 where the counters say nothing.
func rate(now, before uint64, over time.Duration) float64 {
	if over <= 0 || now < before {
		return 0
	}
	return float64(now-before) / over.Seconds()
}

func (s *Status) fill(now, base sample) {
	over := now.at.Sub(base.at)
	s.RatesOverMs = over.Milliseconds()
	s.Calls, s.Failed, s.Bytes = now.stats.Calls, now.stats.Failed, now.stats.Bytes
	s.CallsPerSecond = rate(now.stats.Calls, base.stats.Calls, over)
	s.BytesPerSecond = rate(now.stats.Bytes, base.stats.Bytes, over)
	s.InCallsFraction = rate(now.stats.CallNs, base.stats.CallNs, over) / float64(time.Second)
	for i := range s.Ranks {
		s.Ranks[i].CallsPerSecond = rate(s.Ranks[i].Calls, base.calls[s.Ranks[i].Rank], over)
	}
	before := make(map[int]fabric.PeerStats)
	for _, p := range base.stats.Transport.Peers {
		before[p.Peer] = p
	}
	s.Peers = []PeerBytes{}
	for _, p := range now.stats.Transport.Peers {
		was := before[p.Peer]
		peer := PeerBytes{Peer: p.Peer, Moved: moved(p.SentBytes, p.ReceivedBytes, was.SentBytes, was.ReceivedBytes, over), Rails: []RailBytes{}}
		for i, r := range p.Rails {
			var old fabric.RailStats
			if i < len(was.Rails) {
				old = was.Rails[i]
			}
			peer.Rails = append(peer.Rails, RailBytes{Name: r.Name, Lanes: r.Lanes, Lost: r.Lost, Retransmits: r.Retransmits,
				RoundTripUs: float64(r.RoundTrip) / float64(time.Microsecond),
				Moved:       moved(r.SentBytes, r.ReceivedBytes, old.SentBytes, old.ReceivedBytes, over)})
		}
		s.Peers = append(s.Peers, peer)
	}
}

func moved(sent, received, sentBefore, receivedBefore uint64, over time.Duration) Moved {
	return Moved{SentBytes: sent, ReceivedBytes: received, SentBytesPerSecond: rate(sent, sentBefore, over), ReceivedBytesPerSecond: rate(received, receivedBefore, over)}
}

// ranksOf lists the set bits of a mask of ranks.
func ranksOf(mask uint64) []int {
	list := []int{}
	for r := range fabric.MaxWorld {
		if mask&(1<<r) != 0 {
			list = append(list, r)
		}
	}
	return list
}
