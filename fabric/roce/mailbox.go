package roce

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/streams"
)

// Mailbox is a fabric.StreamTransport whose small calls are one kernel launch: the kernel puts its input into registered memory and rings,
// a proxy posts RDMA writes, and the kernel waits for what the peers' HCAs write. docs/mailbox.md has the protocol. By operation, dtype and
// size, alike on all ranks, a call goes this way or down another path, on the same stream and in order. A failure of one is the other's.
//
// In reading order: mailbox_open.go brings it up, mailbox_hop.go makes its queue pairs, mailbox_relay.go has those of others,
// mailbox_probe.go tries it; mailbox_queue.go launches,
// mailbox_plan.go into graphs; mailbox_proxy.go posts, mailbox_post.go what; mailbox_sync.go waits for a stream; mailbox_fail.go and
// mailbox_note.go are what happens when something breaks, mailbox_close.go how it all is given back. mailbox_record.go tells of it.
type Mailbox struct {
	c           Config // of the queue pairs
	mc          MailboxConfig
	d           Driver
	gpu         GPU
	rest        fabric.StreamTransport
	rank, world int
	stripes     int

	wires     *Transport   // of which only the queue pairs are used
	ends      []mailHop    // all of this rank's
	hops      [][]*mailHop // of them those that lead to a peer, then by stripe
	own       letters
	relayHCAs []*hca // of the other ends
	ways      []*mailWay
	buffers   []uintptr // of the ways, to give back
	regions   []Region  // of the letters and of the buffers, likewise
	proxy     mailProxy

	memory, module uintptr // on the device
	kernels        [3]uintptr
	clock          uint32 // kHz, of a kernel
	event          uintptr
	opened         bool          // event is there
	waits          chan struct{} // has a token while event is in use
	args           []byte        // struct hf_call: memory of its own, since C is handed it
	trial          mailProbe
	hung           bool // its kernel may run yet: what that touches cannot be given back
	plans          map[uintptr]*mailPlan
	captured       atomic.Bool // there was a plan
	queued         atomic.Uint64
	used           streams.Used
	log            mailLog

	failing       sync.Mutex                   // held while abort is stored
	owns          bool                         // rest; under failing
	failed, cause atomic.Pointer[fabric.Cause] // what this rank saw first; the group's
	broken        atomic.Pointer[fabric.Cause] // what the device did besides
	settled       chan struct{}                // closed once cause is set
	closing       atomic.Bool
	inside        atomic.Int32 // uses of what Close frees
	closed        sync.Once
	closeErr      error
}

// Kind is "mailbox".
func (m *Mailbox) Kind() string { return "mailbox" }

// Rank is this rank.
func (m *Mailbox) Rank() int { return m.rank }

// World is the number of ranks.
func (m *Mailbox) World() int { return m.world }

// Ordered is the other path's: the kernels sum in rank order.
func (m *Mailbox) Ordered() bool { return m.rest.Ordered() }

// Alloc is the other path's.
func (m *Mailbox) Alloc(n int) (fabric.DeviceMemory, error) { return m.rest.Alloc(n) }

// Register is the other path's.
func (m *Mailbox) Register(host []byte, device fabric.DevPtr) (fabric.DeviceMemory, error) {
	return m.rest.Register(host, device)
}

// enter begins a use of what Close frees, unless the group has ended.
func (m *Mailbox) enter() error {
	m.inside.Add(1)
	if m.failed.Load() != nil {
		m.leave()
		return m.ended()
	}
	return nil
}

func (m *Mailbox) leave() { m.inside.Add(-1) }

// wrong says whether the driver found its arguments wrong, and did nothing.
func wrong(err error) bool {
	if err == nil { // what follows allocates
		return false
	}
	var e interface{ Invalid() bool }
	return errors.As(err, &e) && e.Invalid()
}
