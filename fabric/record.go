package fabric

import (
	"fmt"
	"sync"
	"time"
)

// RecordSlots is how many calls the flight recorder keeps.
const RecordSlots = 256

// State is how far a recorded call came.
type State uint8

const (
	Running State = iota + 1
	Done
	Failed
)

func (s State) String() string {
	switch s {
	case Running:
		return "running"
	case Done:
		return "done"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("state(%d)", uint8(s))
	}
}

// Record is one call as the flight recorder kept it.
type Record struct {
	Seq    uint64
	Op     Op
	Bytes  int      // as ranks compare them; of a part: of the whole call
	Part   uint32   // of a call that its path moves in parts, one record each
	Peer   int      // of a Pair call: whom it sends to, else whom it receives from; Broadcast: the root; -1 elsewhere
	DType  DType    // reductions only
	Reduce ReduceOp // reductions only
	Hash   uint64   // of an AllGatherV's lengths; an AllGatherRows' bytes of a row; 0 elsewhere
	State  State
	Begun  time.Time
	Queued time.Duration // from Begun until the path had taken the call; of calls made with Begin, else 0
	Took   time.Duration // from Begun until the end; 0 while running
}

func (r Record) String() string {
	s := fmt.Sprintf("%s seq %d, %d bytes", r.Op, r.Seq, r.Bytes)
	if r.Part > 0 {
		s += fmt.Sprintf(", part %d", r.Part)
	}
	if r.Peer >= 0 {
		s += fmt.Sprintf(", peer %d", r.Peer)
	}
	return s + ", " + r.State.String()
}

// recorder is a ring of the last calls, with their counters. Its mutex is contended by readers only: one call at a time
// writes, once as it begins and once as it ends.
type recorder struct {
	mu      sync.Mutex
	epoch   time.Time
	slots   [RecordSlots]slot
	count   uint64 // calls recorded so far
	group   uint64 // the last number used of the group's sequence
	done    uint64
	failed  uint64
	bytes   uint64 // of done calls, as the two below
	spentNs uint64
}

// slot holds times as nanoseconds since the recorder's epoch, so that writing one reads only the monotonic clock.
type slot struct {
	seq                  uint64
	bytes, given         int // as ranks compare them; of in
	begun, queued, ended int64
	peer                 int32
	part                 uint32
	op                   Op
	dtype                DType
	reduce               ReduceOp
	state                State
	hash                 uint64
}

func (r *recorder) now() int64 { return int64(time.Since(r.epoch)) }

func (r *recorder) last() *slot { return &r.slots[(r.count-1)%RecordSlots] }

func (r *recorder) begin(c *Call, at int64) {
	r.mu.Lock()
	r.count++
	*r.last() = slot{seq: c.shownSeq(), bytes: c.Bytes, given: len(c.In), begun: at, peer: int32(c.shownPeer()), part: c.Part, op: c.Op,
		hash: c.Hash ^ uint64(c.Part)<<HashPartShift, state: Running}
	if c.Op.Reduces() {
		r.last().dtype, r.last().reduce = c.DType, c.Reduce
	}
	if c.Class == Group {
		r.group = c.Seq
	}
	r.mu.Unlock()
}

// queued notes when the path had taken the call.
func (r *recorder) queued() {
	at := r.now()
	r.mu.Lock()
	r.last().queued = at
	r.mu.Unlock()
}

func (r *recorder) end(state State) {
	at := r.now()
	r.mu.Lock()
	s := r.last()
	s.state, s.ended = state, at
	if state == Done {
		if s.part == 0 {
			r.done++
		}
		r.bytes += uint64(s.given)
		r.spentNs += uint64(at - s.begun)
	} else {
		r.failed++
	}
	r.mu.Unlock()
}

// progress is the call in flight, or the last one.
func (r *recorder) progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{Peer: -1, Calls: r.done, GroupSeq: r.group}
	if r.count == 0 {
		return p
	}
	s := r.last()
	p.Running, p.Op, p.Class, p.Seq, p.Bytes, p.Peer = s.state == Running, s.op, s.op.Class(), s.seq, s.bytes, int(s.peer)
	since := s.ended
	if p.Running {
		since = s.begun
	}
	p.Age = time.Duration(r.now() - since)
	return p
}

func (r *recorder) stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Calls: r.done, Failed: r.failed, Bytes: r.bytes, CallNs: r.spentNs}
}

// records copies the kept calls, oldest first.
func (r *recorder) records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.count, RecordSlots)
	out := make([]Record, 0, n)
	for i := r.count - n; i < r.count; i++ {
		s := r.slots[i%RecordSlots]
		rec := Record{Seq: s.seq, Op: s.op, Bytes: s.bytes, Part: s.part, Peer: int(s.peer), DType: s.dtype, Reduce: s.reduce, Hash: s.hash, State: s.state,
			Begun: r.epoch.Add(time.Duration(s.begun))}
		if s.queued != 0 {
			rec.Queued = time.Duration(s.queued - s.begun)
		}
		if s.ended != 0 {
			rec.Took = time.Duration(s.ended - s.begun)
		}
		out = append(out, rec)
	}
	return out
}

// shownSeq is the number that names a call to people: of what it sends, else of what it receives.
func (c *Call) shownSeq() uint64 {
	if c.Op == Recv {
		return c.FromSeq
	}
	return c.Seq
}

func (c *Call) shownPeer() int {
	switch c.Op {
	case Exchange, SendRecv, Send:
		return c.Peer
	case Recv:
		return c.From
	case Broadcast:
		return c.Root
	default:
		return -1
	}
}
