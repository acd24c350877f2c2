package bootstrap

import (
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// hub is rank 0's part in what ranks say to each other: all of it passes through here, in the order of each sender.
type hub struct {
	blobs   []contribution           // of the exchange in progress, by rank
	entered []uint32                 // barriers entered, by rank
	barrier uint32                   // barriers released
	owed    [][fabric.MaxWorld]int64 // bytes of messages on their way, [from][to]

	subGathers map[subStep]*subExchange
	subHeld    [fabric.MaxWorld]int // blobs in them, by rank
}

func newHub(world int) hub {
	return hub{blobs: make([]contribution, world), entered: make([]uint32, world), owed: make([][fabric.MaxWorld]int64, world),
		subGathers: map[subStep]*subExchange{}}
}

// message sends this rank's own message, headed by its target, on its way.
func (l *loop) message(b []byte) {
	if l.rank == 0 {
		_ = l.relay(0, b)
		return
	}
	l.links[0].send(frameMessage, b)
}

// relay passes a message on to its target or, for everyone, to all but its sender.
func (l *loop) relay(from int, b []byte) error {
	r := reader{b: b}
	to, data := int(r.u16()), append([]byte(nil), r.rest()...)
	if err := r.end("message"); err != nil {
		return err
	}
	if len(data) > MaxMessage || to != everyone && (to >= l.s.cfg.World || to == from) {
		return fmt.Errorf("%w: a message of %d bytes from rank %d to %d", errFrame, len(data), from, to)
	}
	var w writer
	w.rank(from)
	w = append(w, data...)
	for target := range l.s.cfg.World {
		if target == from || to != everyone && to != target {
			continue
		}
		if l.owed[from][target] += int64(cost(len(data))); l.owed[from][target] > window {
			return fmt.Errorf("%w: rank %d has sent %d bytes to %d without credit", errFrame, from, l.owed[from][target], target)
		}
		if target != 0 {
			l.byRank[target].send(frameMessage, w)
		} else if err := l.s.control.deliver(from, data); err != nil {
			return err
		}
	}
	return nil
}

// creditTo lets a sender send again what this rank has taken.
func (l *loop) creditTo(sender, amount int) {
	var w writer
	w.rank(sender)
	w.u32(uint32(amount))
	if l.rank == 0 {
		_ = l.relayCredit(0, w)
		return
	}
	l.links[0].send(frameCredit, w)
}

func (l *loop) relayCredit(from int, b []byte) error {
	r := reader{b: b}
	sender, amount := r.rank(), int64(r.u32())
	if err := r.end("credit"); err != nil {
		return err
	}
	if sender < 0 || sender >= l.s.cfg.World || sender == from || amount > l.owed[sender][from] {
		return fmt.Errorf("%w: rank %d credits %d bytes to %d", errFrame, from, amount, sender)
	}
	l.owed[sender][from] -= amount
	if sender == 0 {
		return l.s.control.addCredit(from, int(amount))
	}
	var w writer
	w.rank(from)
	w.u32(uint32(amount))
	l.byRank[sender].send(frameCredit, w)
	return nil
}

// enter says that this rank is in its n-th barrier.
func (l *loop) enter(n uint32) {
	var w writer
	w.u32(n)
	if l.rank == 0 {
		_ = l.heardEnter(0, w)
		return
	}
	l.links[0].send(frameEnter, w)
}

// heardEnter counts, and releases everyone when all are in.
func (l *loop) heardEnter(rank int, b []byte) error {
	r := reader{b: b}
	n := r.u32()
	if err := r.end("enter"); err != nil {
		return err
	}
	if n != l.entered[rank]+1 || l.entered[rank] != l.barrier {
		return fmt.Errorf("%w: rank %d enters barrier %d after %d", errFrame, rank, n, l.entered[rank])
	}
	l.entered[rank] = n
	for _, e := range l.entered {
		if e != n {
			return nil
		}
	}
	l.barrier = n
	var w writer
	w.u32(n)
	for _, k := range l.links {
		k.send(frameRelease, w)
	}
	return l.s.control.release(n)
}
