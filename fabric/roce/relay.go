package roce

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	spin "github.com/hipfabric/hipfabric/fabric/internal/link"
)

// relays pass other ranks' frames on, by a goroutine of their own: also while this rank is in no call.
type relays struct {
	t        *Transport
	hcas     []*hca
	ways     []way
	stop     chan struct{}
	started  bool
	unneeded chan struct{} // closed once all sources have said goodbye, or nothing is passed on any more
	once     sync.Once
	done     sync.WaitGroup
}

// way is one direction of a circuit through this rank: frames come by from and go on by to, whose credit goes back by from.
type way struct {
	from, to *hop
	passed   uint64 // frames
	credit   uint64
	over     bool // its source has said goodbye
}

func newRelays(t *Transport, hcas []*hca) *relays {
	return &relays{t: t, hcas: hcas, stop: make(chan struct{}), unneeded: make(chan struct{})}
}

// add joins two hops, both ways.
func (r *relays) add(a, b *hop) {
	r.ways = append(r.ways, way{from: a, to: b}, way{from: b, to: a})
}

func (r *relays) start() {
	r.started = true
	r.done.Go(r.run)
}

// run passes frames on until close. A failure here fails this rank's group, and by that the others'.
func (r *relays) run() {
	needed := true
	release := func() {
		if needed {
			needed = false
			close(r.unneeded)
		}
	}
	defer release()
	runtime.LockOSThread() // it spins
	defer runtime.UnlockOSThread()
	var since time.Time
	var timer *time.Timer
	for {
		moved := false
		for range lookEvery {
			m, err := r.step()
			if err != nil {
				r.t.report(err)
				return
			}
			moved = moved || m
			if r.t.c.Yield {
				spin.YieldThread()
			}
		}
		if r.over() {
			release()
		}
		now := time.Now()
		if moved || since.IsZero() {
			since = now
		}
		rest := time.Duration(0)
		if still := now.Sub(since); still >= r.t.c.SpinFor {
			rest = restAfter(still)
		}
		if rest == 0 {
			select {
			case <-r.stop:
				return
			default:
				continue
			}
		}
		if timer == nil {
			timer = time.NewTimer(rest)
			defer timer.Stop()
		} else {
			timer.Reset(rest)
		}
		select {
		case <-r.stop:
			return
		case <-timer.C:
		}
	}
}

// over says whether all sources have said goodbye.
func (r *relays) over() bool {
	for i := range r.ways {
		if !r.ways[i].over {
			return false
		}
	}
	return true
}

func (r *relays) step() (moved bool, err error) {
	for _, h := range r.hcas {
		if _, err := h.poll(); err != nil {
			return false, err
		}
		if h.bad != nil {
			return false, h.bad.failed()
		}
	}
	for i := range r.ways {
		m, err := r.ways[i].pass()
		if err != nil {
			return false, err
		}
		moved = moved || m
	}
	return moved, nil
}

// pass writes the frames that have come into the next ring, and gives credit back.
func (w *way) pass() (moved bool, err error) {
	tail, slots := w.from.tail(), uint64(w.from.share.slots)
	if tail-w.passed > slots {
		return false, w.from.cause("more frames than have room")
	}
	for w.passed < tail && w.to.room() {
		n := w.passed + 1
		piece, kind, err := w.from.frame(n)
		if err != nil {
			return moved, err
		}
		piece.LKey = w.to.share.lkey // all HCAs know the region
		if err := w.to.sendFrame(n, [2]Piece{piece}, 0, false); err != nil {
			return moved, err
		}
		w.passed, w.over, moved = n, w.over || kind == frame.Down, true
	}
	if err := w.from.restock(); err != nil {
		return moved, err
	}
	if c := w.to.share.credit(); c > w.credit && w.from.room() {
		if c > w.passed {
			return moved, w.to.cause("credit for more frames than were passed on")
		}
		w.credit = c
		w.from.chain[0] = w.from.word(creditAt, c)
		return true, w.from.post(1, false)
	}
	return moved, nil
}

// frame is the piece that a frame which has come is, as long as its header says.
func (h *hop) frame(n uint64) (Piece, frame.Kind, error) {
	kind, _, _, _, payload := frame.Peek((*[frame.Size]byte)(h.share.slot(n)))
	if uint64(payload) > uint64(h.share.payload) {
		return Piece{}, kind, h.cause(fmt.Sprintf("a frame of %d bytes; a slot has room for %d", payload, h.share.payload))
	}
	return h.share.piece(h.share.slotAt(n), frame.Size+int(payload)), kind, nil
}

// close ends the goroutine and gives up what it had posted: of a whole group once all have said goodbye, or have had a second for it.
func (r *relays) close(whole bool) error {
	if whole && r.started {
		late := time.NewTimer(flushWithin)
		defer late.Stop()
		select {
		case <-r.unneeded:
		case <-late.C:
		}
	}
	r.once.Do(func() { close(r.stop) })
	r.done.Wait()
	flush(r.t.d, r.hcas)
	var errs []error
	for _, h := range r.hcas {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}
