package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/hipfabric/hipfabric/verbs"
)

// List is all checks.
func List() []Check {
	short := verbs.Connection{Timeout: time.Millisecond, Retries: 1, RNRRetries: 1, RNRTimer: time.Millisecond}
	plain, free := verbs.QPConfig{}, verbs.Connection{}
	return []Check{
		{"writes arrive in whole", pair(plain, free, writes)},
		{"reads fetch", pair(plain, free, reads)},
		{"immediates arrive in order", pair(plain, free, immediates)},
		{"messages are gathered and scattered", pair(verbs.QPConfig{MaxSendSGE: 2, MaxRecvSGE: 2}, free, messages)},
		{"inline memory is free at once", pair(plain, free, inline)},
		{"a receive tells that what was before it is there", pair(plain, free, flagged)},
		{"unsignaled requests do not complete", pair(plain, free, unsignaled)},
		{"a wrong key is the cause and the rest is flushed", pair(plain, free, wrongKey)},
		{"past the end is refused", pair(plain, free, pastTheEnd)},
		{"memory that is not registered is refused here", pair(plain, free, unregistered)},
		{"a receive that is too small fails both", pair(plain, free, tooSmall)},
		{"no receive is RNR exceeded", pair(plain, short, noReceive)},
		{"a peer that is gone is retry exceeded", pair(plain, short, gone)},
		{"a failed queue pair gives receives back", pair(plain, free, flush)},
		{"a full queue is ENOMEM", pair(verbs.QPConfig{MaxSend: 16}, verbs.Connection{RNRRetries: 7}, full)},
		{"a long inline request is refused", pair(plain, free, longInline)},
		{"states are kept", states},
	}
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i)*7 ^ byte(i>>8) ^ seed
	}
}

func writes(a, b *End) error {
	for i, n := range []int{0, 1, 7, 64, 4095, 4096, 4097, Bytes} {
		fill(a.Mem.Bytes(), byte(i))
		clear(b.Mem.Bytes())
		if err := errors.Join(a.post(a.Write(b, 0, 0, uint32(n))), a.ends(verbs.StatusSuccess)); err != nil {
			return err
		}
		if !bytes.Equal(a.Mem.Bytes()[:n], b.Mem.Bytes()[:n]) || !bytes.Equal(b.Mem.Bytes()[n:], make([]byte, Bytes-n)) {
			return fmt.Errorf("%d bytes arrived otherwise", n)
		}
	}
	return nil
}

func reads(a, b *End) error {
	fill(b.Mem.Bytes(), 9)
	r := a.Write(b, 100, 3, 5000)
	r.Op = verbs.OpRead
	if err := errors.Join(a.post(r), a.ends(verbs.StatusSuccess)); err != nil {
		return err
	}
	if !bytes.Equal(b.Mem.Bytes()[3:5003], a.Mem.Bytes()[100:5100]) {
		return errors.New("other bytes were read")
	}
	return nil
}

func immediates(a, b *End) error {
	const n = 64
	for i := range uint32(n) {
		w := a.Write(b, 0, 0, i)
		w.Op, w.Imm = verbs.OpWriteImm, 0xfeed0000+i
		_, err := b.QP.PostRecv(verbs.RecvWR{ID: uint64(i)})
		if err := errors.Join(err, a.post(w)); err != nil {
			return err
		}
	}
	got, err := b.Poll(n)
	for i, wc := range got {
		if wc.Status != 0 || wc.ID != uint64(i) || wc.Op != verbs.CompletedRecvWrite || wc.Flags&verbs.CompletionImm == 0 || wc.Imm != 0xfeed0000+uint32(i) || wc.Bytes != uint32(i) {
			return fmt.Errorf("receive %d is %+v", i, wc)
		}
	}
	_, last := a.Poll(n)
	return errors.Join(err, last)
}

func messages(a, b *End) error {
	fill(a.Mem.Bytes()[:8192], 3)
	_, err := b.QP.PostRecv(verbs.RecvWR{SGE: []verbs.SGE{b.MR.SGE(16384, 1000), b.MR.SGE(32768, 6000)}})
	err = errors.Join(err, a.post(verbs.SendWR{Op: verbs.OpSendImm, Imm: 5, Flags: verbs.SendSignaled, SGE: []verbs.SGE{a.MR.SGE(0, 3000), a.MR.SGE(4096, 3000)}}))
	got, late := b.Poll(1)
	if err := errors.Join(err, late, a.ends(verbs.StatusSuccess)); err != nil {
		return err
	}
	sent := slices.Concat(a.Mem.Bytes()[:3000], a.Mem.Bytes()[4096:7096])
	if got[0].Bytes != 6000 || got[0].Imm != 5 || !bytes.Equal(sent[:1000], b.Mem.Bytes()[16384:17384]) || !bytes.Equal(sent[1000:], b.Mem.Bytes()[32768:37768]) {
		return fmt.Errorf("another message came: %+v", got[0])
	}
	return nil
}

func inline(a, b *End) error {
	for i := range 20 {
		fill(a.Mem.Bytes()[:64], byte(i))
		want := slices.Clone(a.Mem.Bytes()[:64])
		w := a.Write(b, 0, 0, 64)
		w.Flags |= verbs.SendInline
		w.SGE[0].LKey = 0
		err := a.post(w)
		clear(a.Mem.Bytes()[:64])
		if err := errors.Join(err, a.ends(verbs.StatusSuccess)); err != nil {
			return err
		}
		if !bytes.Equal(want, b.Mem.Bytes()[:64]) {
			return errors.New("later bytes were sent")
		}
	}
	return nil
}

// flagged holds whether bytes land in order or not: the payload is behind the receive's completion.
func flagged(a, b *End) error {
	flag := (*uint64)(unsafe.Pointer(&b.Mem.Bytes()[Bytes-8]))
	for round := uint64(1); round <= 200; round++ {
		n := uint32(round*331)%(32<<10) + 1
		fill(a.Mem.Bytes()[:n], byte(round))
		*(*uint64)(unsafe.Pointer(&a.Mem.Bytes()[Bytes-8])) = round
		payload, word := a.Write(b, 0, 0, n), a.Write(b, Bytes-8, Bytes-8, 8)
		payload.Flags, word.Op = 0, verbs.OpWriteImm
		_, err := b.QP.PostRecv(verbs.RecvWR{})
		if err := errors.Join(err, a.post(payload, word), b.ends(verbs.StatusSuccess), a.ends(verbs.StatusSuccess)); err != nil {
			return err
		}
		if atomic.LoadUint64(flag) != round || !bytes.Equal(a.Mem.Bytes()[:n], b.Mem.Bytes()[:n]) {
			return fmt.Errorf("round %d: the receive completed before what precedes it was there", round)
		}
	}
	return nil
}

func unsignaled(a, b *End) error {
	w := a.Write(b, 0, 0, 8)
	w.Flags = 0
	last := a.Write(b, 0, 77, 8)
	if err := a.post(w, w, last); err != nil {
		return err
	}
	got, err := a.Poll(1)
	if err == nil && got[0].ID != 77 {
		err = fmt.Errorf("%+v completed", got[0])
	}
	return err
}

func wrongKey(a, b *End) error {
	bad := a.Write(b, 0, 0, 64)
	bad.RKey += 0x100
	err := a.post(bad, a.Write(b, 0, 0, 64), a.Write(b, 0, 0, 64))
	err = errors.Join(err, a.ends(verbs.StatusRemoteAccess, verbs.StatusFlushed, verbs.StatusFlushed))
	state, _, asked := a.QP.Query()
	if state != verbs.StateErr {
		return errors.Join(err, asked, fmt.Errorf("the queue pair is in %v", state))
	}
	return err
}

func pastTheEnd(a, b *End) error {
	return errors.Join(a.post(a.Write(b, 0, Bytes-63, 64)), a.ends(verbs.StatusRemoteAccess))
}

func unregistered(a, b *End) error {
	w := a.Write(b, 0, 0, 64)
	w.SGE[0].LKey += 0x100
	return errors.Join(a.post(w, a.Write(b, 0, 0, 1)), a.among(verbs.StatusLocalProtection, verbs.StatusLocalOperation), a.ends(verbs.StatusFlushed))
}

func tooSmall(a, b *End) error {
	_, err := b.QP.PostRecv(verbs.RecvWR{SGE: []verbs.SGE{b.MR.SGE(0, 7)}})
	err = errors.Join(err, a.post(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.SendSignaled, SGE: []verbs.SGE{a.MR.SGE(0, 8)}}))
	return errors.Join(err, b.among(verbs.StatusLocalLength, verbs.StatusLocalOperation), a.among(verbs.StatusRemoteInvalid, verbs.StatusRemoteOperation))
}

func noReceive(a, _ *End) error {
	return errors.Join(a.post(verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{a.MR.SGE(0, 8)}}), a.ends(verbs.StatusRNRRetryExceeded))
}

func gone(a, b *End) error {
	w := a.Write(b, 0, 0, 8)
	return errors.Join(b.QP.Close(), a.post(w, w), a.ends(verbs.StatusRetryExceeded, verbs.StatusFlushed))
}

func flush(a, b *End) error {
	for range 3 {
		if _, err := b.QP.PostRecv(verbs.RecvWR{}); err != nil {
			return err
		}
	}
	err := errors.Join(b.QP.Fail(), b.ends(verbs.StatusFlushed, verbs.StatusFlushed, verbs.StatusFlushed))
	return errors.Join(err, a.QP.Reset(), b.QP.Reset(), Connect(a, b, verbs.Connection{}), a.post(a.Write(b, 0, 0, 8)), a.ends(verbs.StatusSuccess))
}

func full(a, b *End) error {
	if err := a.post(verbs.SendWR{ID: 1000, Op: verbs.OpSend, Flags: verbs.SendSignaled}); err != nil {
		return err
	}
	posted, err := 1, error(nil)
	for err == nil && posted < 250 {
		if err = a.post(a.Write(b, 0, 0, 8)); err == nil {
			posted++
		}
	}
	if !errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("after %d requests: %w", posted, err)
	}
	if _, err := b.QP.PostRecv(verbs.RecvWR{}); err != nil {
		return err
	}
	return a.ends(make([]verbs.Status, posted)...)
}

func longInline(a, b *End) error {
	n := uint32(a.QP.Limits().MaxInline + 1)
	w := a.Write(b, 0, 0, n)
	w.Flags |= verbs.SendInline
	if err := a.post(w); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOMEM) {
		return fmt.Errorf("%d bytes inline: %w", n, err)
	}
	return nil
}

func states(ctx context.Context, ca, _ *verbs.Context) (err error) {
	a, err := NewEnd(ctx, ca, verbs.QPConfig{}, All)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	k := verbs.Connection{GIDIndex: a.GID.Index, Remote: verbs.Endpoint{QPN: a.QP.QPN(), GID: a.GID.GID}}
	refused := func(what string, err error) error {
		if !errors.Is(err, syscall.EINVAL) {
			return errors.Join(fmt.Errorf("%s is not refused as invalid", what), err)
		}
		return nil
	}
	posted := func() error { return a.post(verbs.SendWR{}) }
	_, received := a.QP.PostRecv(verbs.RecvWR{})
	err = errors.Join(refused("a receive in RESET", received), refused("RESET to RTR", a.QP.ReadyToReceive(k)), refused("RESET to RTS", a.QP.ReadyToSend(k)))
	err = errors.Join(err, a.QP.Init(k), refused("INIT to RTS", a.QP.ReadyToSend(k)), refused("a send in INIT", posted()))
	return errors.Join(err, a.QP.ReadyToReceive(k), refused("a send in RTR", posted()), a.QP.ReadyToSend(k), refused("RTS to RTR", a.QP.ReadyToReceive(k)))
}
