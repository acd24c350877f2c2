//go:build linux

package netns

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// Fault is an error that has been taken apart to travel; the zero one is nil.
type Fault struct {
	Text string // of an error that is no OpError: all that is known of it
	Call *fabric.OpError
	Err  Reason
	Here *Reason // OpError.Local
}

// Reason is what an OpError wraps.
type Reason struct {
	Kind       string
	Cause      bool // a fabric.Cause; else an error of one call
	Peer, From int
	Part       uint32
	Text       string // the whole of it
}

func kinds() []error {
	return []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrMismatch, fabric.ErrDesync, fabric.ErrPeerFailed, fabric.ErrTimeout,
		fabric.ErrAborted, fabric.ErrUnauthorized, fabric.ErrClosed, measure.ErrWrong}
}

// takeApart never loses an error.
func takeApart(err error) Fault {
	var op *fabric.OpError
	switch {
	case err == nil:
		return Fault{}
	case !errors.As(err, &op):
		return Fault{Text: err.Error(), Err: reasonOf(err)}
	}
	bare := *op
	bare.Err, bare.Local = nil, nil
	f := Fault{Text: err.Error(), Call: &bare, Err: reasonOf(op.Err)}
	if op.Local != nil {
		here := reasonOf(op.Local)
		f.Here = &here
	}
	return f
}

func reasonOf(err error) Reason {
	r := Reason{Peer: -1, From: -1, Text: err.Error()}
	var cause *fabric.Cause
	if errors.As(err, &cause) {
		r = Reason{Cause: true, Kind: cause.Kind.Error(), Peer: cause.Peer, From: cause.From, Part: cause.Part, Text: cause.Text}
		return r
	}
	for _, k := range kinds() {
		if errors.Is(err, k) {
			r.Kind = k.Error()
			break
		}
	}
	return r
}

// err puts the error together again.
func (f Fault) err() error {
	switch {
	case f.Text == "":
		return nil
	case f.Call == nil && f.Err.Kind == "":
		return errors.New(f.Text)
	case f.Call == nil:
		return f.Err.err()
	}
	op := *f.Call
	op.Err = f.Err.err()
	if f.Here != nil {
		op.Local = f.Here.err()
	}
	return &op
}

func (r Reason) err() error {
	for _, k := range kinds() {
		switch {
		case k.Error() != r.Kind:
		case r.Cause:
			return &fabric.Cause{Kind: k, Peer: r.Peer, From: r.From, Part: r.Part, Text: r.Text}
		default:
			return fmt.Errorf("%w%s", k, strings.TrimPrefix(r.Text, r.Kind))
		}
	}
	return errors.New(r.Text)
}
