package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// MaxBlob is the most bytes that a rank gives to AllGather or Broadcast.
const MaxBlob = 64 << 10

// gathering is the one blob exchange that this rank is in; Session.mu guards it.
type gathering struct {
	step  uint32
	open  bool // not all blobs are here yet
	blobs [][]byte
	got   int
}

// AllGather gives every rank's blob, in rank order, on every rank. It blocks until all ranks call it, and ends by ctx,
// by the group's failure, or by Close (ErrClosed). ErrInvalid for a blob over MaxBlob. All ranks make the same calls of
// AllGather, Broadcast, Compare and Vote in the same order; others are ErrDesync.
func (s *Session) AllGather(ctx context.Context, blob []byte) ([][]byte, error) {
	return s.exchange(ctx, "all-gather", blob)
}

// Broadcast gives rank 0's blob on every rank; the others' are not looked at. It blocks and fails as AllGather.
func (s *Session) Broadcast(ctx context.Context, blob []byte) ([]byte, error) {
	if s.cfg.Rank != 0 {
		blob = nil
	}
	blobs, err := s.exchange(ctx, "broadcast", blob)
	if err != nil {
		return nil, err
	}
	return blobs[0], nil
}

// Compare is ErrMismatch, with the same text on every rank, unless all ranks give the same settings. It does not fail
// the group. It blocks as AllGather; ErrInvalid for settings beyond Config's bounds.
func (s *Session) Compare(ctx context.Context, settings []Setting) error {
	if err := validateSettings(settings); err != nil {
		return s.opError("compare", err)
	}
	blobs, err := s.exchange(ctx, "compare", encodeSettings(settings))
	if err != nil {
		return err
	}
	var first []Setting
	for rank, b := range blobs {
		theirs, err := decodeSettings(b)
		if err != nil {
			return s.opError("compare", &fabric.Cause{Kind: fabric.ErrMismatch, Peer: rank, From: 0, Text: err.Error()})
		}
		if rank == 0 {
			first = theirs
		} else if d := difference(first, theirs, rank); d != nil {
			return s.opError("compare", d)
		}
	}
	return nil
}

// difference is the first setting that rank 0 and another do not share, in order of name.
func difference(zero, other []Setting, rank int) *fabric.Cause {
	values := func(settings []Setting) map[string]string {
		m := make(map[string]string, len(settings))
		for _, s := range settings {
			m[s.Name] = s.Value
		}
		return m
	}
	a, b := values(zero), values(other)
	names := make([]string, 0, len(a)+len(b))
	for _, s := range zero {
		names = append(names, s.Name)
	}
	for _, s := range other {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	shown := func(m map[string]string, name string) string {
		if v, ok := m[name]; ok {
			return fmt.Sprintf("%q", v)
		}
		return "nothing"
	}
	for _, name := range slices.Compact(names) {
		if x, y := shown(a, name), shown(b, name); x != y {
			return mismatch(name, x, rank, y)
		}
	}
	return nil
}

// mismatch names the field and both ranks' values.
func mismatch(field, zero string, rank int, theirs string) *fabric.Cause {
	return &fabric.Cause{Kind: fabric.ErrMismatch, Peer: rank, From: 0,
		Text: clip(fmt.Sprintf("%s: rank 0 has %s, rank %d has %s; all ranks must have the same", field, zero, rank, theirs))}
}

// Refusal is one rank's no.
type Refusal struct {
	Rank   int
	Reason string
}

// VoteError is what every rank gets, alike, when at least one has voted no. It unwraps to the sentinel in the lowest
// such rank's reason, ErrAborted when it has none.
type VoteError struct {
	Step string
	No   []Refusal
	kind error
}

func (e *VoteError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vote on %s: no from", e.Step)
	for i, n := range e.No {
		if i > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " rank %d: %s", n.Rank, n.Reason)
	}
	return b.String()
}

func (e *VoteError) Unwrap() error { return e.kind }

// Vote lets all ranks act alike: nil when every rank's no is nil, and otherwise the same *VoteError in an *OpError on
// every rank. It does not fail the group. step names the question, in at most 256 bytes; it blocks as AllGather.
func (s *Session) Vote(ctx context.Context, step string, no error) error {
	if len(step) > maxValue {
		return s.opError("vote", fabric.Invalidf("the step's name has %d bytes; at most %d are allowed", len(step), maxValue))
	}
	var mine writer
	if no != nil {
		mine.u8(kindOf(no))
		mine.text(clip(no.Error()))
	}
	blobs, err := s.exchange(ctx, "vote on "+step, mine)
	if err != nil {
		return err
	}
	e := &VoteError{Step: step}
	for rank, b := range blobs {
		if len(b) == 0 {
			continue
		}
		r := reader{b: b}
		kind, reason := r.kind(), r.text(maxText)
		if e.kind == nil {
			e.kind = kind
		}
		e.No = append(e.No, Refusal{rank, reason})
	}
	if e.No == nil {
		return nil
	}
	err = s.opError("vote", e)
	return err
}

// exchange is the all-gather under all of these. Rank 0 checks that the ranks' labels agree.
func (s *Session) exchange(ctx context.Context, label string, blob []byte) ([][]byte, error) {
	op, _, _ := strings.Cut(label, " ")
	if len(blob) > MaxBlob {
		return nil, s.opError(op, fabric.Invalidf("the blob has %d bytes; at most %d are allowed", len(blob), MaxBlob))
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	ready := func() bool { return !s.gather.open }
	stuck := func() *fabric.Cause { return s.missing(s.others()) }
	// One that ended by its context is still under way for the others.
	if err := s.await(ctx, op, ready, stuck); err != nil {
		return nil, err
	}
	s.mu.Lock()
	g := &s.gather
	*g = gathering{step: g.step + 1, open: true, blobs: make([][]byte, s.cfg.World)}
	mine := contribution{step: g.step, label: label, blob: slices.Clone(blob)}
	s.mu.Unlock()
	if !s.post(func() { s.loop.contribute(mine) }) {
		return nil, s.opError(op, fabric.ErrClosed)
	}
	if err := s.await(ctx, op, ready, stuck); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gather.blobs, nil
}

// contribution is one rank's part of an exchange.
type contribution struct {
	step  uint32
	label string
	blob  []byte
	have  bool
}

func (c *contribution) encode() []byte {
	var w writer
	w.u32(c.step)
	w.text(c.label)
	return append(w, c.blob...)
}

func (l *loop) contribute(c contribution) {
	if l.rank == 0 {
		_ = l.gatherFrom(0, c)
		return
	}
	l.links[0].send(frameGather, c.encode())
}

func (l *loop) heardGather(rank int, b []byte) error {
	r := reader{b: b}
	c := contribution{step: r.u32(), label: r.text(2 * maxValue), blob: slices.Clone(r.rest())}
	if err := r.end("blob"); err != nil {
		return err
	}
	return l.gatherFrom(rank, c)
}

// gatherFrom takes a rank's blob and, once all are here, gives every rank all of them.
func (l *loop) gatherFrom(rank int, c contribution) error {
	if len(c.blob) > MaxBlob {
		return fmt.Errorf("%w: a blob of %d bytes; at most %d are allowed", errFrame, len(c.blob), MaxBlob)
	}
	if l.blobs[rank].have {
		return fmt.Errorf("%w: two blobs of rank %d in one exchange", errFrame, rank)
	}
	c.have = true
	l.blobs[rank] = c
	for i := range l.blobs {
		if !l.blobs[i].have {
			return nil
		}
	}
	all := l.blobs
	l.blobs = make([]contribution, len(all))
	for r := range all {
		if all[r].label != all[0].label || all[r].step != all[0].step {
			l.report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: r, From: 0, Text: clip(fmt.Sprintf("rank 0 is in exchange %d, %s; rank %d in exchange %d, %s",
				all[0].step, all[0].label, r, all[r].step, all[r].label))})
			return nil
		}
	}
	for r := range all {
		var w writer
		w.u32(all[r].step)
		w.rank(r)
		w = append(w, all[r].blob...)
		for _, k := range l.links {
			k.send(frameGathered, w)
		}
		if err := l.s.gathered(all[r].step, r, all[r].blob); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) heardGathered(b []byte) error {
	r := reader{b: b}
	step, rank, blob := r.u32(), r.rank(), slices.Clone(r.rest())
	return errors.Join(r.end("gathered blob"), s.gathered(step, rank, blob))
}

func (s *Session) gathered(step uint32, rank int, blob []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gather
	if !g.open || step != g.step || rank != g.got || len(blob) > MaxBlob {
		return fmt.Errorf("%w: a blob of rank %d in exchange %d, while rank %d's in %d is due", errFrame, rank, step, g.got, g.step)
	}
	g.blobs[rank] = blob
	if g.got++; g.got == len(g.blobs) {
		g.open = false
		s.notify()
	}
	return nil
}
