package fabric

import "time"

// MaxWorld is the most ranks a group can have.
const MaxWorld = 64

// Transport is what a host path implements: it moves a validated, numbered call. fabric/tcp is one; fabrictest has one
// in memory, the oracle. All errors are a *Cause: what ended the call, and with it the group.
type Transport interface {
	Kind() string // "tcp"
	Rank() int
	World() int
	// Begin starts a call and never blocks. The call and its buffers belong to the transport until the Pending has
	// ended. The Collective begins one call at a time; the Pending is worth until the next Begin.
	Begin(*Call) (Pending, error)
	Alloc(n int) (Memory, error) // memory this path moves in place
	Ordered() bool               // sums in rank order, with the same bits on every rank
	// Waiting is the set of ranks that a stalled call waits for, a bit a rank; 0 when none or not stalled.
	// Safe from any goroutine.
	Waiting() uint64
	Abort(cause error) // ends the call in flight and every later one with cause; safe from any goroutine, idempotent
	Close() error      // waits for a Poll or Wait in progress to leave; safe from any goroutine, idempotent
	Stats() TransportStats
}

// Pending is a call in flight. Its methods are called from one goroutine at a time.
type Pending interface {
	Poll() (done bool, err error) // makes progress; never blocks
	Progress() uint64             // grows as bytes move
	// Stall is for a call that has moved nothing for idle: it publishes whom the call waits for, in Transport.Waiting
	// until something moves, and gives the *Cause of kind ErrTimeout that says so.
	Stall(idle time.Duration) error
	// Wait polls, spins, then parks until the call is done. Once nothing has moved for idle it gives a *Cause of kind
	// ErrTimeout that names the peer waited for. A negative idle never times out.
	Wait(idle time.Duration) error
}

// Arbiter settles a group's one cause; bootstrap implements it.
type Arbiter interface {
	// Report hands over what this rank saw and returns the group's cause, after a bounded wait for the verdict.
	Report(local error) (cause error)
	// Cause is the group's cause, nil while it is healthy. Never blocks.
	Cause() error
}

// Progress is what a rank is doing, sampled by the heartbeat and by status: the call in flight, else the last one. At
// the zero Op there was none yet.
type Progress struct {
	Running bool // the call is in flight
	Op      Op
	Class   Class
	Seq     uint64
	Bytes   int
	Peer    int           // of a Pair call; Broadcast: the root; -1 elsewhere
	Age     time.Duration // since the call began while it runs, since it ended afterwards
	Waiting uint64        // ranks that it waits for, a bit a rank
	Calls   uint64        // completed so far
	// GroupSeq is the last number of the group's sequence that this rank has used, whatever it did since between pairs;
	// 0 before its first collective.
	GroupSeq uint64
	// Group is the name of the group whose call this is, when it is not the one that Open gave; ranks are that one's.
	Group string
}
