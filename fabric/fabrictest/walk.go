package fabrictest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// WalkError says what is missing in an error of a path: every one is a *fabric.OpError that names its operation, its path
// and its rank, and wraps one of the sentinels with a text. nil for a good error and for nil.
func WalkError(err error) error {
	if err == nil {
		return nil
	}
	var op *fabric.OpError
	if !errors.As(err, &op) {
		return fmt.Errorf("%T is no *fabric.OpError: %w", err, err)
	}
	var wrong []string
	blank := func(what, value string) {
		if strings.TrimSpace(value) == "" {
			wrong = append(wrong, what+" is blank")
		}
	}
	blank("Op", op.Op)
	blank("Path", op.Path)
	blank("Group", op.Group)
	if op.Rank < 0 || op.Rank >= fabric.MaxWorld || op.Peer < -1 || op.Peer >= fabric.MaxWorld || op.From < -1 || op.From >= fabric.MaxWorld {
		wrong = append(wrong, fmt.Sprintf("Rank %d, Peer %d or From %d is no rank", op.Rank, op.Peer, op.From))
	}
	if op.Err == nil {
		wrong = append(wrong, "Err is nil")
	} else {
		wrong = append(wrong, inner("Err", op.Err)...)
	}
	if op.Local != nil {
		wrong = append(wrong, inner("Local", op.Local)...)
	}
	var cause *fabric.Cause
	if errors.As(op.Err, &cause) {
		if op.Peer != cause.Peer || op.From != cause.From || op.Part != cause.Part {
			wrong = append(wrong, "Peer, From or Part is not the cause's")
		}
		if cause.From < 0 {
			wrong = append(wrong, "nobody reported the cause")
		}
		named := errors.Is(err, fabric.ErrPeerFailed) || errors.Is(err, fabric.ErrTimeout) || errors.Is(err, fabric.ErrDesync)
		if named && cause.Peer < 0 {
			wrong = append(wrong, "the cause names no peer")
		}
	} else if op.Scope() != fabric.ScopeCall {
		wrong = append(wrong, "an error of group scope without a *fabric.Cause")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s, in: %w", strings.Join(wrong, "; "), err)
}

// inner holds what an OpError wraps to one sentinel and a text of its own.
func inner(what string, err error) (wrong []string) {
	kinds := 0
	for _, kind := range []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrMismatch, fabric.ErrDesync, fabric.ErrPeerFailed,
		fabric.ErrTimeout, fabric.ErrAborted, fabric.ErrUnauthorized, fabric.ErrClosed,
		fabric.ErrDevice} {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 {
		wrong = append(wrong, fmt.Sprintf("%s %T is %d of the sentinels, not one", what, err, kinds))
	}
	if strings.TrimSpace(err.Error()) == "" {
		wrong = append(wrong, what+" has no text")
	}
	var cause *fabric.Cause
	if errors.As(err, &cause) && strings.TrimSpace(cause.Text) == "" && !errors.Is(err, fabric.ErrClosed) {
		wrong = append(wrong, what+" is a cause that says nothing of what happened")
	}
	return wrong
}
