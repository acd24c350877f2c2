package fabric

import (
	"errors"
	"sync"
	"sync/atomic"
)

// path is what the end of a group needs of a Transport or a StreamTransport.
type path interface {
	Kind() string
	Abort(cause error)
	Close() error
}

// fate keeps a group's one cause, and ends its path with it: the same for host and for device memory.
type fate struct {
	path    path
	group   string
	arbiter Arbiter // may be nil
	rank    int

	closed  atomic.Bool
	causeMu sync.Mutex
	cause   atomic.Pointer[Cause]
	device  atomic.Pointer[Cause] // this rank's, which failed beside another cause: every later error tells it too
	refused atomic.Uint64
}

// withDefaults gives what Options mean.
func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Group == "" {
		o.Group = DefaultGroup
	}
	return o
}

// Rank is this rank, 0 to World-1.
func (f *fate) Rank() int { return f.rank }

// failure is the group's cause as far as this rank knows it.
func (f *fate) failure() *Cause {
	if cause := f.cause.Load(); cause != nil {
		return cause
	}
	if f.arbiter != nil {
		if err := f.arbiter.Cause(); err != nil {
			return f.settle(CauseOf(err))
		}
	}
	return nil
}

// settle keeps the first cause and ends the path with it.
func (f *fate) settle(cause *Cause) *Cause {
	if f.cause.CompareAndSwap(nil, cause) {
		f.path.Abort(cause)
	}
	return f.cause.Load()
}

// fail turns what ended a call into the error of the call: it asks the Arbiter for the group's cause, which is the same
// on every rank, and keeps what this rank saw beside it.
func (f *fate) fail(op string, seq uint64, err error) error {
	local := CauseOf(err)
	if f.closed.Load() && f.cause.Load() == nil {
		return f.refuse(op, ErrClosed)
	}
	if local.From < 0 {
		mine := *local
		mine.From = f.rank
		local = &mine
	}
	cause := f.cause.Load()
	if cause == nil {
		cause = local
		if f.arbiter != nil {
			cause = CauseOf(f.arbiter.Report(local))
		}
		cause = f.settle(cause)
	}
	if errors.Is(local.Kind, ErrDevice) && local.Peer == f.rank {
		f.device.CompareAndSwap(nil, local)
	}
	if errors.Is(local.Kind, cause.Kind) && local.Peer == cause.Peer && local.Text == cause.Text {
		local = nil
	}
	return f.opError(op, seq, cause, local)
}

func (f *fate) opError(op string, seq uint64, cause, local *Cause) error {
	e := &OpError{Op: op, Path: f.path.Kind(), Group: f.group, Rank: f.rank, Peer: cause.Peer, From: cause.From, Seq: seq,
		Part: cause.Part, Err: cause}
	if local == nil && !errors.Is(cause.Kind, ErrDevice) {
		local = f.device.Load()
	}
	if local != nil {
		e.Local = local
	}
	return e
}

// refuse is an error of call scope: nothing moved.
func (f *fate) refuse(op string, err error) error {
	f.refused.Add(1)
	return &OpError{Op: op, Path: f.path.Kind(), Group: f.group, Rank: f.rank, Peer: -1, From: -1, Err: err}
}

// usable says why no call can be made any more, nil while one can.
func (f *fate) usable(op string) error {
	if f.closed.Load() {
		return f.refuse(op, ErrClosed)
	}
	if cause := f.failure(); cause != nil {
		return f.opError(op, 0, cause, nil)
	}
	return nil
}

// Check gives the group's cause as an error, nil while it is healthy. It never blocks.
func (f *fate) Check() error {
	if cause := f.failure(); cause != nil {
		return f.opError("check", 0, cause, nil)
	}
	return nil
}

// Abort ends the group on every rank: the calls under way and every later one return ErrAborted with cause's text, which
// is all of cause that travels. It returns once the group's cause is settled, which an earlier failure may have been. Any
// goroutine, any time.
func (f *fate) Abort(cause error) {
	text := "no reason given"
	if cause != nil {
		text = cause.Error()
	}
	f.causeMu.Lock()
	defer f.causeMu.Unlock()
	if f.closed.Load() || f.failure() != nil {
		return
	}
	local := &Cause{Kind: ErrAborted, Peer: -1, From: f.rank, Text: text}
	settled := error(local)
	if f.arbiter != nil {
		settled = f.arbiter.Report(local)
	}
	_ = f.settle(CauseOf(settled))
}

// Close ends this rank's use of the path: a call under way, in another goroutine, returns ErrClosed, and later ones too. Of
// device memory, what is queued is abandoned and no stream stays parked on it; Close waits for what the device may still
// use, five seconds at most, and an ErrDevice names what is freed later. It is idempotent.
func (f *fate) Close() error {
	if !f.closed.CompareAndSwap(false, true) {
		return nil
	}
	f.path.Abort(&Cause{Kind: ErrClosed, Peer: -1, From: f.rank})
	return f.path.Close()
}
