package conform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/hipfabric/hipfabric/verbs"
)

// Station is an end of a connection in a seam's handles.
type Station struct {
	*verbs.Seam
	Port   verbs.SeamPort
	HCA    uintptr
	Memory uintptr
	Mem    []byte
	Region verbs.SeamRegion
	QP     verbs.SeamQP
	ctx    context.Context
}

// NewStation opens a device's first port, with 64 KiB and a queue pair of 64 sends and 64 receives.
func NewStation(ctx context.Context, s *verbs.Seam, device string) (*Station, error) {
	e := &Station{Seam: s, ctx: ctx}
	err := e.open(device)
	if err != nil {
		err = errors.Join(err, e.End())
	}
	return e, err
}

func (e *Station) open(device string) error {
	ports, err := e.Ports()
	if err != nil {
		return err
	}
	for _, p := range ports {
		if p.Device == device && p.Port == 1 {
			e.Port = p
		}
	}
	if e.HCA, err = e.Open(device, 256); err != nil {
		return err
	}
	if e.Mem, e.Memory, err = e.Alloc(Bytes); err != nil {
		return err
	}
	if e.Region, err = e.Register(e.HCA, e.Mem, true); err != nil {
		return err
	}
	e.QP, err = e.NewQP(e.HCA, 1, 64, 64, 32)
	return err
}

// End closes all of it.
func (e *Station) End() error { return errors.Join(e.Close(e.HCA), e.Close(e.Memory)) }

// Join connects it to another one, which must be joined to it too.
func (e *Station) Join(to *Station) error {
	own, err := e.address()
	if err != nil {
		return err
	}
	peer, err := to.address()
	if err != nil {
		return err
	}
	return e.Connect(e.QP.Handle, verbs.SeamConnection{
		Port: 1, GIDIndex: own.Index, MTU: min(e.Port.MTU, to.Port.MTU), PSN: 5, PeerPSN: 5, PeerQPN: to.QP.Number, PeerGID: peer.Addr,
	})
}

// address is the IPv4-mapped GID of RoCE v2.
func (e *Station) address() (verbs.SeamGID, error) {
	for _, g := range e.Port.GIDs {
		if g.Version == 2 && verbs.GID(g.Addr).Addr().Is4() {
			return g, nil
		}
	}
	return verbs.SeamGID{}, fmt.Errorf("no IPv4-mapped RoCE v2 GID among %v", e.Port.GIDs)
}

// Addr is the address of a byte of its memory.
func (e *Station) Addr(at int) uint64 { return uint64(uintptr(unsafe.Pointer(&e.Mem[at]))) }

// Word is a word of its memory.
func (e *Station) Word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&e.Mem[at])) }

// Piece is bytes of its memory.
func (e *Station) Piece(at int, n uint32) verbs.SeamPiece {
	return verbs.SeamPiece{Addr: e.Addr(at), Bytes: n, LKey: e.Region.LKey}
}

// Flagged is a payload of two pieces for the peer's byte 64, and then, inline, the word at 8000 for its word at 1024.
func (e *Station) Flagged(to *Station, first, second verbs.SeamPiece) []verbs.SeamWork {
	return []verbs.SeamWork{
		{ID: 1, Pieces: [2]verbs.SeamPiece{first, second}, Remote: to.Addr(64), RKey: to.Region.RKey},
		{ID: 2, Pieces: [2]verbs.SeamPiece{{}, e.Piece(8000, 8)}, Remote: to.Addr(1024), RKey: to.Region.RKey, Inline: true, Signaled: true},
	}
}

// Await waits until the word is v.
func (e *Station) Await(word *uint64, v uint64) error {
	for atomic.LoadUint64(word) != v {
		if err := e.ctx.Err(); err != nil {
			return fmt.Errorf("the word is %d and not %d: %w", atomic.LoadUint64(word), v, err)
		}
		runtime.Gosched()
	}
	return nil
}

// Take waits for n completions.
func (e *Station) Take(n int) ([]verbs.SeamCompletion, error) {
	var all []verbs.SeamCompletion
	into := make([]verbs.SeamCompletion, 16)
	for len(all) < n {
		got, err := e.Poll(e.HCA, into[:min(16, n-len(all))])
		if err == nil {
			err = e.ctx.Err()
		}
		all = append(all, into[:got]...)
		if err != nil {
			return all, fmt.Errorf("%d of %d completions, %v: %w", len(all), n, all, err)
		}
		if got == 0 {
			runtime.Gosched()
		}
	}
	return all, nil
}

// Seams checks that two devices that reach each other do through seams what fabric/roce needs.
func Seams(ctx context.Context, sa, sb *verbs.Seam, da, db string) (err error) {
	a, err := NewStation(ctx, sa, da)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.End()) }()
	b, err := NewStation(ctx, sb, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.End()) }()
	if err := errors.Join(a.Join(b), b.Join(a)); err != nil {
		return err
	}
	for _, step := range []func(a, b *Station) error{payloadThenFlag, immediate, refusedWrite} {
		if err := step(a, b); err != nil {
			return err
		}
	}
	return nil
}

func payloadThenFlag(a, b *Station) error {
	copy(a.Mem, "header")
	copy(a.Mem[4096:], "payload")
	*a.Word(8000) = 7
	n, err := a.Post(a.QP.Handle, a.Flagged(b, a.Piece(0, 6), a.Piece(4096, 7)))
	if err = errors.Join(err, b.Await(b.Word(1024), 7)); err != nil || n != 2 {
		return fmt.Errorf("%d posted: %w", n, err)
	}
	if got := string(b.Mem[64:77]); got != "headerpayload" {
		return fmt.Errorf("behind the flag is %q", got)
	}
	return a.ended(verbs.SeamCompletion{ID: 2, QPN: a.QP.Number})
}

func immediate(a, b *Station) error {
	err := b.PostReceives(b.QP.Handle, 8)
	_, failed := a.Post(a.QP.Handle, []verbs.SeamWork{{
		ID: 3, Pieces: [2]verbs.SeamPiece{a.Piece(0, 6)}, Remote: b.Addr(512), RKey: b.Region.RKey, Immediate: true, Imm: 0xfeedbeef, Signaled: true,
	}})
	if err := errors.Join(err, failed, b.ended(verbs.SeamCompletion{QPN: b.QP.Number, Imm: 0xfeedbeef, Receive: true, Immediate: true})); err != nil {
		return err
	}
	if got := string(b.Mem[512:518]); got != "header" {
		return fmt.Errorf("behind the receive is %q", got)
	}
	return a.ended(verbs.SeamCompletion{ID: 3, QPN: a.QP.Number})
}

func refusedWrite(a, b *Station) error {
	w := verbs.SeamWork{ID: 4, Pieces: [2]verbs.SeamPiece{a.Piece(0, 8)}, Remote: b.Addr(0), RKey: b.Region.RKey + 0x100}
	if _, err := a.Post(a.QP.Handle, []verbs.SeamWork{w, w}); err != nil {
		return err
	}
	return a.ended(verbs.SeamCompletion{ID: 4, QPN: a.QP.Number, Failed: true}, verbs.SeamCompletion{ID: 4, QPN: a.QP.Number, Failed: true, Flushed: true})
}

// ended compares but for texts, of which one that failed must have one.
func (e *Station) ended(want ...verbs.SeamCompletion) error {
	got, err := e.Take(len(want))
	if err != nil {
		return err
	}
	for i, c := range got {
		text := c.Text
		c.Text = ""
		if c != want[i] || c.Failed != (text != "") {
			return fmt.Errorf("completion %d is %+v %q, and should be %+v", i, c, text, want[i])
		}
	}
	return nil
}
