package bootstrap

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/hipfabric/hipfabric/fabric"
)

// maxSubGathers bounds what rank 0 holds for a rank: its blobs in exchanges of sub-groups that others have not come to.
const maxSubGathers = 256

// subGathering is the one exchange of a sub-group that this rank is in.
type subGathering struct {
	step  uint32
	blobs [][]byte // by rank of the sub-group
	got   uint64
}

// AllGather gives every member's blob, in rank order, on every member. It blocks until all call it, and ends by ctx, by
// the sub-group's failure or by Close. After ctx has ended it the members are out of step: Report it. ErrInvalid for a
// blob over MaxBlob.
func (u *Sub) AllGather(ctx context.Context, blob []byte) ([][]byte, error) {
	select {
	case <-u.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { u.turn <- struct{}{} }()
	if err := u.contribute(blob); err != nil {
		return nil, err
	}
	return u.gathered(ctx)
}

// Agree is nil on every member once all have called it, or the same failure on every member: also when ctx ends, which
// fails the sub-group, unless all have come. It is an isolated sub-group's last exchange: no failure of a member's comes after it.
func (u *Sub) Agree(ctx context.Context) error {
	<-u.turn
	defer func() { u.turn <- struct{}{} }()
	u.s.mu.Lock()
	u.agreeing = true
	u.s.mu.Unlock()
	if err := u.contribute(nil); err != nil {
		return err
	}
	_, err := u.gathered(ctx)
	if err == nil {
		return nil
	}
	if gone := u.gone("agree"); gone != nil {
		return gone
	}
	// Rank 0 may have heard from the last one already: what it says first holds, on every member.
	report := subCause{u.key, u.set, u.outward(endedBy(ctx, -1, u.rank, "the others have not come"))}
	u.s.post(func() { u.s.loop.reportSub(report) })
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.s.cfg.VerdictBusy)
	defer cancel()
	if _, err = u.gathered(patience); err == nil {
		return nil
	}
	if gone := u.gone("agree"); gone != nil {
		return gone
	}
	return u.opError("agree", u.inwardError(u.noVerdict()))
}

// contribute begins the next exchange with this rank's blob.
func (u *Sub) contribute(blob []byte) error {
	if len(blob) > MaxBlob {
		return u.opError("all-gather", fabric.Invalidf("the blob has %d bytes; at most %d are allowed", len(blob), MaxBlob))
	}
	s := u.s
	s.mu.Lock()
	u.gather = subGathering{step: u.gather.step + 1, blobs: make([][]byte, len(u.members))}
	mine := subBlob{key: u.key, set: u.set, step: u.gather.step, rank: s.cfg.Rank, blob: slices.Clone(blob)}
	s.mu.Unlock()
	if !s.post(func() { s.loop.contributeSub(mine) }) {
		return u.opError("all-gather", fabric.ErrClosed)
	}
	return nil
}

// gathered waits for the exchange in progress. One that was complete before the sub-group ended is good.
func (u *Sub) gathered(ctx context.Context) ([][]byte, error) {
	s := u.s
	for {
		s.mu.Lock()
		done, blobs, changed := u.gather.got == u.set, u.gather.blobs, s.changed
		absent := s.missing((u.set | 1) &^ (1 << s.cfg.Rank)) // through rank 0 everything goes
		s.mu.Unlock()
		if done {
			return blobs, nil
		}
		if err := u.gone("all-gather"); err != nil {
			return nil, err
		}
		if absent != nil {
			_ = s.Report(absent)
			if err := u.gone("all-gather"); err != nil {
				return nil, err
			}
		}
		select {
		case <-changed:
		case <-u.life.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// subBlob is one rank's part of an exchange of a sub-group, to rank 0 and from it.
type subBlob struct {
	key  string
	set  uint64
	step uint32
	rank int // of the session
	blob []byte
}

func (m *subBlob) encode() []byte {
	var w writer
	w.text(m.key)
	w.u64(m.set)
	w.u32(m.step)
	w.rank(m.rank)
	return append(w, m.blob...)
}

func (l *loop) heardSubBlob(b []byte) (subBlob, error) {
	r := reader{b: b}
	m := subBlob{key: r.text(maxKey), set: r.u64(), step: r.u32(), rank: r.rank(), blob: slices.Clone(r.rest())}
	if m.key == "" || m.set&^l.everybody() != 0 || m.rank < 0 || m.rank >= l.s.cfg.World || m.set&(1<<m.rank) == 0 || m.step == 0 || len(m.blob) > MaxBlob {
		r.bad = true
	}
	return m, r.end("sub-group's blob")
}

// subStep names an exchange.
type subStep struct {
	key  string
	step uint32
}

// subExchange is what rank 0 holds of one: the blobs that have come.
type subExchange struct {
	set   uint64
	have  uint64
	blobs [fabric.MaxWorld][]byte
}

func (l *loop) contributeSub(m subBlob) {
	if l.rank == 0 {
		_ = l.gatherSub(m)
		return
	}
	l.links[0].send(frameSubGather, m.encode())
}

// gatherSub takes a member's blob and, once all are here, gives every member all of them.
func (l *loop) gatherSub(m subBlob) error {
	at := subStep{m.key, m.step}
	x := l.subGathers[at]
	if x == nil {
		x = &subExchange{set: m.set}
		l.subGathers[at] = x
	}
	if x.set != m.set || x.have&(1<<m.rank) != 0 || l.subHeld[m.rank] >= maxSubGathers {
		return fmt.Errorf("%w: rank %d's blob for exchange %d of sub-group %q of ranks %x", errFrame, m.rank, m.step, m.key, m.set)
	}
	x.blobs[m.rank] = m.blob
	x.have |= 1 << m.rank
	l.subHeld[m.rank]++
	if x.have != x.set {
		return nil
	}
	l.dropGather(at, x)
	for rest := x.set; rest != 0; rest &= rest - 1 {
		from := bits.TrailingZeros64(rest)
		one := subBlob{key: m.key, set: x.set, step: m.step, rank: from, blob: x.blobs[from]}
		told := one.encode()
		for _, k := range l.links {
			if x.set&(1<<k.peer) != 0 {
				k.send(frameSubGathered, told)
			}
		}
		if x.set&1 != 0 {
			l.gotSubBlob(one)
		}
	}
	return nil
}

func (l *loop) dropGather(at subStep, x *subExchange) {
	delete(l.subGathers, at)
	for rest := x.have; rest != 0; rest &= rest - 1 {
		l.subHeld[bits.TrailingZeros64(rest)]--
	}
}

// forgetGathers drops what is held for a sub-group that has failed, so that nothing of it is complete after the verdict.
func (l *loop) forgetGathers(key string) {
	for at, x := range l.subGathers {
		if at.key == key {
			l.dropGather(at, x)
		}
	}
}

// leaveSub lets rank 0 forget this rank's part of what will never be complete.
func (l *loop) leaveSub(key string) {
	if l.rank == 0 {
		l.forgetBlobs(key, 0)
		return
	}
	var w writer
	w.text(key)
	l.links[0].send(frameSubLeft, w)
}

func (l *loop) heardSubLeft(rank int, b []byte) error {
	r := reader{b: b}
	key := r.text(maxKey)
	if err := r.end("sub-group's leave"); err != nil {
		return err
	}
	l.forgetBlobs(key, rank)
	return nil
}

func (l *loop) forgetBlobs(key string, rank int) {
	for at, x := range l.subGathers {
		if at.key != key || x.have&(1<<rank) == 0 {
			continue
		}
		x.have &^= 1 << rank
		x.blobs[rank] = nil
		l.subHeld[rank]--
		if x.have == 0 {
			delete(l.subGathers, at)
		}
	}
}

// gotSubBlob takes one member's blob, once; what comes after the sub-group's end here is late.
func (l *loop) gotSubBlob(m subBlob) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.subs[m.key]
	if u == nil || u.gather.step != m.step || u.set != m.set || u.gather.got&(1<<m.rank) != 0 {
		return
	}
	u.gather.blobs[slices.Index(u.members, m.rank)] = m.blob
	if u.gather.got |= 1 << m.rank; u.gather.got == u.set {
		u.agreed = u.agreeing
		s.notify()
	}
}
