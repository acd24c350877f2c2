package fabrictest

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// SendAhead is how many bytes a rank can send that the other has not received, headers counted: a socket's two
// buffers.
const SendAhead = 256 << 10

// Network joins the ranks of one process through memory. Safe for concurrent use.
type Network struct {
	mu    sync.Mutex
	pipes [][]pipe // [from][to]
	ends  []*Transport
	gone  []string // what became of a rank; "" while it lives
	cut   [][]bool
}

// NewNetwork gives the network of a world of ranks.
func NewNetwork(world int) *Network {
	n := &Network{pipes: make([][]pipe, world), gone: make([]string, world), cut: make([][]bool, world)}
	for r := range world {
		n.pipes[r], n.cut[r] = make([]pipe, world), make([]bool, world)
		for p := range world {
			n.pipes[r][p].bound = SendAhead
		}
		n.ends = append(n.ends, &Transport{net: n, rank: r, wake: make(chan struct{}, 1)})
	}
	return n
}

// Transport is rank's end, the same one at each call.
func (n *Network) Transport(rank int) *Transport { return n.ends[rank] }

// Kill ends a rank as SIGKILL would: what it has sent still arrives, then its peers see ErrPeerFailed. Its own calls
// end too.
func (n *Network) Kill(rank int) {
	n.ends[rank].Abort(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: rank, From: rank, Text: fmt.Sprintf("rank %d was killed", rank)})
	n.leave(rank, "was killed")
}

// Partition stops all that moves between two ranks, without loss, until Heal.
func (n *Network) Partition(a, b int) { n.setCut(a, b, true) }

// Heal lets two ranks reach each other again.
func (n *Network) Heal(a, b int) { n.setCut(a, b, false) }

func (n *Network) setCut(a, b int, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[a][b], n.cut[b][a] = cut, cut
	n.ends[a].rouse()
	n.ends[b].rouse()
}

func (n *Network) leave(rank int, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone[rank] == "" {
		n.gone[rank] = what
	}
	for _, t := range n.ends {
		t.rouse()
	}
}

// Transport is one rank's end of a Network.
type Transport struct {
	net     *Network
	rank    int
	wake    chan struct{} // has a token when something may have changed
	driving sync.Mutex    // held by the Poll or Wait in progress
	call    *fabric.Call
	sends   []outgoing
	recvs   []incoming
	scratch [][]byte
	timer   *time.Timer

	cause    error // guarded by net.mu
	waiting  atomic.Uint64
	progress atomic.Uint64
	parks    atomic.Uint64
}

// outgoing is what this call sends to one peer; incoming what it awaits from one.
type outgoing struct {
	header
	to     int
	data   []byte
	opened bool
	sent   int
}

type incoming struct {
	header
	from  int
	dst   []byte
	known bool // the header has come and was the right one
	got   int
	done  bool
}

// Kind is "memory".
func (t *Transport) Kind() string { return "memory" }

// Rank is this rank.
func (t *Transport) Rank() int { return t.rank }

// World is the number of ranks.
func (t *Transport) World() int { return len(t.net.ends) }

// Ordered is true.
func (t *Transport) Ordered() bool { return true }

// Waiting is the set of ranks that the call in flight waits for.
func (t *Transport) Waiting() uint64 { return t.waiting.Load() }

// Begin takes the call; nothing but this rank's own block moves before Poll or Wait.
func (t *Transport) Begin(c *fabric.Call) (fabric.Pending, error) {
	t.net.mu.Lock()
	cause := t.cause
	t.net.mu.Unlock()
	if cause != nil {
		return nil, cause
	}
	t.call = c
	t.plan(c)
	return t, nil
}

// Poll moves what can move now.
func (t *Transport) Poll() (bool, error) {
	t.driving.Lock()
	defer t.driving.Unlock()
	return t.poll()
}

func (t *Transport) poll() (bool, error) {
	t.net.mu.Lock()
	done, err := t.move()
	t.net.mu.Unlock()
	if done {
		t.waiting.Store(0)
		t.finish(t.call)
	}
	return done, err
}

// Progress grows with every header and every piece of payload.
func (t *Transport) Progress() uint64 { return t.progress.Load() }

// Wait polls and parks until the call is done or nothing has moved for idle.
func (t *Transport) Wait(idle time.Duration) error {
	t.driving.Lock()
	defer t.driving.Unlock()
	defer t.waiting.Store(0)
	for {
		before := t.Progress()
		done, err := t.poll()
		if done || err != nil {
			return err
		}
		if t.Progress() != before {
			continue
		}
		t.parks.Add(1)
		if idle < 0 {
			<-t.wake
			continue
		}
		if err := t.park(idle); err != nil {
			return err
		}
	}
}

// Stall says whom the call waits for; every Poll publishes it.
func (t *Transport) Stall(idle time.Duration) error {
	t.driving.Lock()
	defer t.driving.Unlock()
	return t.late(idle)
}

// park waits until something moves for this rank, at most idle; being roused for nothing does not extend it.
func (t *Transport) park(idle time.Duration) error {
	if t.timer == nil {
		t.timer = time.NewTimer(idle)
	} else {
		t.timer.Reset(idle)
	}
	defer t.timer.Stop()
	before := t.Progress()
	for {
		select {
		case <-t.wake:
			if done, err := t.stirred(before); done {
				return err
			}
		case <-t.timer.C:
			return t.late(idle)
		}
	}
}

// stirred says whether Wait's loop has anything to do: a move, the end, or a cause.
func (t *Transport) stirred(before uint64) (bool, error) {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	done, err := t.move()
	return done || err != nil || t.Progress() != before, err
}

func (t *Transport) late(idle time.Duration) error {
	mask := t.waiting.Load()
	peer := bits.TrailingZeros64(mask)
	text := fmt.Sprintf("rank %d waited %v for rank %d in %v seq %d", t.rank, idle, peer, t.call.Op, max(t.call.Seq, t.call.FromSeq))
	if t.call.Op == fabric.Send {
		text += "; if it sends to this rank too, both wait for the other: use SendRecv"
	}
	return &fabric.Cause{Kind: fabric.ErrTimeout, Peer: peer, From: -1, Text: text}
}

// move does what it can of all sends and receives; net.mu is held.
func (t *Transport) move() (done bool, err error) {
	if t.cause != nil {
		return false, t.cause
	}
	var waiting uint64
	for i := range t.sends {
		left, err := t.push(&t.sends[i])
		if err != nil {
			return false, err
		}
		if left {
			waiting |= 1 << t.sends[i].to
		}
	}
	for i := range t.recvs {
		left, err := t.pull(&t.recvs[i])
		if err != nil {
			return false, err
		}
		if left {
			waiting |= 1 << t.recvs[i].from
		}
	}
	t.waiting.Store(waiting)
	return waiting == 0, nil
}

func (t *Transport) push(o *outgoing) (left bool, err error) {
	if o.opened && o.sent == len(o.data) {
		return false, nil
	}
	n := t.net
	if n.gone[o.to] != "" {
		return false, t.peerGone(o.to)
	}
	p := &n.pipes[t.rank][o.to]
	if n.cut[t.rank][o.to] || (!o.opened && !p.open(o.header)) {
		return true, nil
	}
	opened := !o.opened
	o.opened = true
	wrote := p.write(o.data[o.sent:])
	o.sent += wrote
	if wrote > 0 || opened {
		t.progress.Add(1)
		n.ends[o.to].rouse()
	}
	return o.sent < len(o.data), nil
}

func (t *Transport) pull(r *incoming) (left bool, err error) {
	n := t.net
	p := &n.pipes[r.from][t.rank]
	switch m := p.front(); {
	case r.done:
		return false, nil
	case n.cut[r.from][t.rank]:
		return true, nil
	case m == nil && n.gone[r.from] != "":
		return false, t.peerGone(r.from)
	case m == nil:
		return true, nil
	case !r.known && m.header != r.header:
		return false, t.desync(r, m)
	case r.known && len(m.data) == 0:
		if n.gone[r.from] != "" {
			return false, t.peerGone(r.from)
		}
		return true, nil
	}
	r.known = true
	r.got += p.take(r.dst[r.got:])
	r.done = r.got == len(r.dst)
	t.progress.Add(1)
	n.ends[r.from].rouse()
	return !r.done, nil
}

func (t *Transport) peerGone(peer int) error {
	return &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: peer, From: -1, Text: fmt.Sprintf("rank %d %s", peer, t.net.gone[peer])}
}

func (t *Transport) desync(r *incoming, m *message) error {
	mine := r.header
	mine.op = t.call.Op // a Recv awaits a send
	return &fabric.Cause{Kind: fabric.ErrDesync, Peer: r.from, From: -1,
		Text: fmt.Sprintf("rank %d is in %v; rank %d is in %v", t.rank, mine, r.from, m.header)}
}

func (t *Transport) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Abort ends the call in flight and every later one with cause.
func (t *Transport) Abort(cause error) {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	if t.cause == nil {
		t.cause = cause
	}
	t.rouse()
}

// Close leaves the network; the peers' calls that need this rank end with ErrPeerFailed.
func (t *Transport) Close() error {
	t.Abort(&fabric.Cause{Kind: fabric.ErrClosed, Peer: -1, From: t.rank})
	t.net.leave(t.rank, "closed its group")
	t.driving.Lock()
	defer t.driving.Unlock()
	return nil
}

// Stats counts frames and bytes as a socket path would.
func (t *Transport) Stats() fabric.TransportStats {
	t.net.mu.Lock()
	defer t.net.mu.Unlock()
	s := fabric.TransportStats{Kind: t.Kind(), Parks: t.parks.Load()}
	for p := range t.World() {
		if p == t.rank {
			continue
		}
		out, in := &t.net.pipes[t.rank][p], &t.net.pipes[p][t.rank]
		s.Peers = append(s.Peers, fabric.PeerStats{Peer: p, SentBytes: out.bytes, SentFrames: out.frames,
			ReceivedBytes: in.bytes - uint64(in.held), ReceivedFrames: in.frames - uint64(len(in.messages))})
	}
	return s
}

// Alloc gives plain memory: here all of it moves alike.
func (t *Transport) Alloc(n int) (fabric.Memory, error) { return heap(make([]byte, n)), nil }

type heap []byte

func (h heap) Bytes() []byte { return h }
func (h heap) Close() error  { return nil }
