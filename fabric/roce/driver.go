package roce

import (
	"context"
	"time"
)

// Driver is what this package needs of RDMA; verbs.Seam is one. Handles are its own, and never 0. It is safe for concurrent use; of a
// queue pair or an HCA one goroutine at a time posts, one polls and one waits for events. Methods do not block but for the time of the
// call into the library; NextEvent waits.
type Driver interface {
	String() string // the library, for messages
	// Ports lists the ports of all devices that speak RoCE or InfiniBand, whatever their state, by device and port. Errors: no RDMA here, why.
	Ports() ([]Port, error)
	// Open opens a device for queue pairs that need completions of room for entries.
	Open(device string, entries int) (hca uintptr, err error)
	// Alloc gives zeroed whole pages, which Close of the handle takes back once nothing of it is registered.
	Alloc(bytes int) (mem []byte, handle uintptr, err error)
	// Register lets an HCA read mem, and peers with remote write there. mem is Alloc's or whole pages of the caller's.
	Register(hca uintptr, mem []byte, remote bool) (region Region, err error)
	// NewQP makes a queue pair with room for so many requests of two pieces each, and receives of none.
	NewQP(hca uintptr, port, send, receive, inline int) (QP, error)
	// Connect takes the queue pair to RTS. The peer's must be there, and may not send before ours is connected too.
	Connect(qp uintptr, to Connection) error
	// Post queues a chain in order. Where it fails the first posted are queued, and no others.
	Post(qp uintptr, chain []Work) (posted int, err error)
	// PostReceives queues n receives of no bytes.
	PostReceives(qp uintptr, n int) error
	// Poll takes completions of all the HCA's queue pairs.
	Poll(hca uintptr, into []Completion) (int, error)
	// Fail moves a queue pair to ERR: all that is posted completes as flushed.
	Fail(qp uintptr) error
	// NextEvent waits for something that happened to the device; it ends by ctx or the HCA's Close.
	NextEvent(ctx context.Context, hca uintptr) (Event, error)
	// Close closes what has the handle: an HCA last. A second time it does nothing.
	Close(handle uintptr) error
}

// Types that Driver's methods name are aliases of types without a name, so that a package that must not be imported here can have
// the same methods.
type (
	// Port is a device's port.
	Port = struct {
		Device   string
		Port     int // from 1
		Active   bool
		State    string // in the library's words
		Ethernet bool
		MTU      int   // active, bytes of payload a packet
		Rate     int64 // bits a second; 0: not known
		GIDs     []GID
	}
	// GID is an address of a port. Its index is worth until the addresses of the host change.
	GID = struct {
		Index   int
		Version int // of RoCE: 1 or 2; 0: InfiniBand
		Addr    [16]byte
		NetDev  string // "" where there is none in this network namespace
	}
	// Region is registered memory.
	Region = struct {
		Handle     uintptr
		LKey, RKey uint32
	}
	// QP is a queue pair that is not connected.
	QP = struct {
		Handle  uintptr
		Number  uint32
		Inline  int  // bytes of an inline request
		InOrder bool // what writes place is placed in order, by the device's word
	}
	// Connection is a queue pair's way to its peer.
	Connection = struct {
		Port, GIDIndex, MTU    int
		PSN                    uint32 // our first packet's
		PeerQPN, PeerPSN       uint32
		PeerGID                [16]byte
		Timeout                time.Duration // of one packet
		Retries                int
		TrafficClass, HopLimit int
	}
	// Piece is bytes of registered memory of ours.
	Piece = struct {
		Addr        uint64
		Bytes, LKey uint32
	}
	// Work is a write. Pieces of no bytes are left out.
	Work = struct {
		ID        uint64
		Pieces    [2]Piece
		Remote    uint64
		RKey      uint32
		Imm       uint32
		Immediate bool // with Imm
		Inline    bool
		Signaled  bool
	}
	// Completion is a request's or a receive's end.
	Completion = struct {
		ID        uint64 // of the request; worth nothing of a receive
		QPN       uint32
		Imm       uint32
		Receive   bool // not of what failed
		Immediate bool
		Failed    bool
		Flushed   bool   // failed only since the queue pair had failed
		Text      string // of what failed
	}
	// Event is something that happened to a device.
	Event = struct {
		Text                                               string
		Port                                               int    // 0: not of a port
		QPN                                                uint32 // 0: not of a queue pair
		Fatal, PortDown, PortUp, QPFatal, AddressesChanged bool
	}
)
