//go:build unix

package failure

import (
	"errors"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// order is what a worker is told to do, one after the other.
type order struct {
	Do       string
	Rank     int                  // open, reopen, split
	World    int                  // open, reopen
	Master   string               // open; reopen appends a number
	Timeout  time.Duration        // open
	Verify   bool                 // open
	Raw      bool                 // open: without the root package, so that a fault can be put in; on every rank or on none
	Kind     fabrictest.FaultKind // open, Raw: of the connections that this rank dials; 0 is none
	Inbound  bool
	Offset   int64
	Op       fabric.Op // calls, once, await
	Bytes    int
	Peer     int           // once, await: whom the call waits for
	Count    int           // reopen
	Seed     uint64        // stream
	Odd      int           // stream: the call that differs, -1 for none
	After    time.Duration // stream: abort after it; 0 never
	Leave    bool          // stream: close instead
	Color    int           // split
	Isolated bool
}

// event is what a worker says.
type event struct {
	What string // "open", "begun", "parked", "done", "error", "closed", "leak"
	At   int64  // nanoseconds of the host's clock
	Fault
	Again       string // an error's: what the next call said
	Fds         int    // closed, leak: held now, and after the first group
	Goroutines  int
	FdsBefore   int
	Before      int
	Description string
}

// Fault is an error taken apart.
type Fault struct {
	Kind  string
	Peer  int
	From  int
	Text  string // of the group's cause: the same on every rank
	Local string
}

// takeApart never loses an error: one that is none of ours keeps its text as its kind.
func takeApart(err error) Fault {
	f := Fault{Kind: err.Error(), Peer: -1, From: -1}
	for _, k := range []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrMismatch, fabric.ErrDesync, fabric.ErrPeerFailed, fabric.ErrTimeout,
		fabric.ErrAborted, fabric.ErrUnauthorized, fabric.ErrClosed, measure.ErrWrong} {
		if errors.Is(err, k) {
			f.Kind = k.Error()
			break
		}
	}
	var op *fabric.OpError
	if errors.As(err, &op) {
		f.Peer, f.From, f.Text = op.Peer, op.From, op.Err.Error()
		if op.Local != nil {
			f.Local = op.Local.Error()
		}
		return f
	}
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		f.Peer, f.From, f.Text = cause.Peer, cause.From, cause.Error()
	}
	return f
}
