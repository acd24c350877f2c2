package doctor

import "github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"

// Schema names the form of a Report's JSON.
const Schema = "hipfabric.doctor.links/1"

// Report is all that was seen of the way to a peer, from this host's side, and what it means.
type Report struct {
	Schema     string       `json:"schema"`
	Date       string       `json:"date"`
	Peer       string       `json:"peer"`        // host:port, as asked for
	FarCommand string       `json:"far_command"` // that makes the peer listen there
	Near       Host         `json:"near"`
	Far        *Host        `json:"far"`         // null when it was not reached
	NotReached *NotReached  `json:"not_reached"` // null when it was
	CutShort   string       `json:"cut_short"`   // why what follows is incomplete; "" when it is not
	Trips      []RoundTrips `json:"round_trips"`
	Rates      []Rate       `json:"rates"`
	Findings   []Finding    `json:"findings"`
}

// Host is one end.
type Host struct {
	Name string `json:"name"`
	machine.Facts
	Address    string              `json:"address"`   // its end of the way, without port; "" when not known
	Interface  string              `json:"interface"` // that has the address
	Interfaces []machine.Interface `json:"interfaces"`
	Firewalls  []string            `json:"firewalls"` // at work, as far as its user may see
	Changes    map[string]int64    `json:"changes"`   // of the interface's counters of errors, drops and carrier during the measurement
}

// carrier is the interface that has the end's address; a zero one when it is not known.
func (h *Host) carrier() machine.Interface {
	if h != nil {
		for _, i := range h.Interfaces {
			if i.Name == h.Interface {
				return i
			}
		}
	}
	return machine.Interface{RxUsecs: -1, RPFilter: -1}
}

// The reasons why a peer is not reached.
const (
	Refused      = "refused"      // the host is there, nothing listens
	Silent       = "silent"       // no answer to the connection's first packet
	Unreachable  = "unreachable"  // no route, or nobody answers at that address on the link
	Unauthorized = "unauthorized" // another secret, or another kind of group
	Mismatch     = "mismatch"     // another version
	Stranger     = "stranger"     // something else listens there
	Busy         = "busy"         // it is being measured by another host
	Mute         = "mute"         // it accepts and says nothing
)

// NotReached says why there was no measurement.
type NotReached struct {
	Kind      string `json:"kind"`
	Text      string `json:"text"` // what was seen
	WaitedMs  int64  `json:"waited_ms"`
	Neighbour string `json:"neighbour"` // on the same link: "answers" or "silent" to ARP; "" when not known
	Address   string `json:"address"`   // that this host would come from; "" when it has no route
}

// The ways to wait for an answer.
const (
	Spinning = "spinning"
	Blocking = "blocking"
)

// RoundTrips are the times from a small message to its answer.
type RoundTrips struct {
	Wait    string  `json:"wait"` // Spinning or Blocking, at both ends
	Bytes   int     `json:"bytes"`
	Samples int     `json:"samples"`
	MinUs   float64 `json:"min_us"`
	P50Us   float64 `json:"p50_us"`
	P99Us   float64 `json:"p99_us"`
	MaxUs   float64 `json:"max_us"`
}

// The directions of a Rate, from the asking end.
const (
	ToPeer   = "to peer"
	FromPeer = "from peer"
)

// Rate is what a number of lanes moved in one direction.
type Rate struct {
	Lanes       int     `json:"lanes"`
	Direction   string  `json:"direction"`
	Bytes       int64   `json:"bytes"` // that arrived
	Seconds     float64 `json:"seconds"`
	GBps        float64 `json:"GBps"`
	Gbps        float64 `json:"Gbps"`
	Segments    int64   `json:"segments"`    // with data, sent again included; -1 where the system does not count
	Retransmits int64   `json:"retransmits"` // of them sent again; -1 likewise
	MSS         int     `json:"mss"`         // bytes of a full segment; 0 when not told, as PathMTU
	PathMTU     int     `json:"path_mtu"`    // as the sender's kernel knows it
	Stalled     bool    `json:"stalled"`     // what was sent did not all arrive in time
}

// loss is the share of segments that were sent again; 0 where none are counted.
func (r Rate) loss() float64 {
	if r.Segments <= 0 || r.Retransmits <= 0 {
		return 0
	}
	return float64(r.Retransmits) / float64(r.Segments)
}
