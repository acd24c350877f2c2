package fabric

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The sentinels: every error of this module is one of them, reached with errors.Is. docs/guide.md says what each means and what to do.
var (
	ErrInvalid      error = &sentinel{text: "invalid"}
	ErrUnsupported  error = &sentinel{text: "unsupported", is: errors.ErrUnsupported}
	ErrMismatch     error = &sentinel{text: "mismatch"}
	ErrDesync       error = &sentinel{text: "desync"}
	ErrPeerFailed   error = &sentinel{text: "peer failed"}
	ErrTimeout      error = &sentinel{text: "timeout", is: os.ErrDeadlineExceeded}
	ErrAborted      error = &sentinel{text: "aborted"}
	ErrUnauthorized error = &sentinel{text: "unauthorized"}
	ErrClosed       error = &sentinel{text: "closed", is: os.ErrClosed}
	ErrDevice       error = &sentinel{text: "device failed"}
	ErrCapture      error = &sentinel{text: "capture", is: ErrUnsupported}
)

type sentinel struct {
	text string
	is   error // what it is as well: the standard library's own, or a wider one of ours
}

func (s *sentinel) Error() string        { return s.text }
func (s *sentinel) Is(target error) bool { return s.is != nil && errors.Is(s.is, target) }

// Scope is the largest thing that is broken after an error.
type Scope uint8

const (
	ScopeCall  Scope = iota + 1 // nothing moved: go on
	ScopeGroup                  // every later call returns the same cause: close and reopen
	// ScopeDevice is as ScopeGroup, and the buffers of calls may still be written until the device has synchronised.
	ScopeDevice
)

func (s Scope) String() string {
	switch s {
	case ScopeCall:
		return "call"
	case ScopeDevice:
		return "device"
	default:
		return "group"
	}
}

// Cause is why a group ended. Kind, Peer, From and Text are the same on every rank.
type Cause struct {
	Kind error  // a sentinel
	Peer int    // the rank at fault; -1 when none
	From int    // the rank that reported it first; -1 while only this rank knows
	Part uint32 // of the call, where one is known
	Text string // what is known
	// Group is the name of the group in which it arose, whose ranks Text is about, where that is not the group that Open
	// gave; the same on every rank.
	Group string
	Err   error // what this rank's own system said; never travels
}

func (c *Cause) Error() string {
	s := c.Kind.Error()
	if c.Group != "" {
		s += fmt.Sprintf(" in group %q", c.Group)
	}
	if c.Text != "" {
		s += ": " + c.Text
	}
	return s
}

// Unwrap gives the sentinel, and the system's error where there is one.
func (c *Cause) Unwrap() []error {
	if c.Err == nil {
		return []error{c.Kind}
	}
	return []error{c.Kind, c.Err}
}

// CauseOf finds the Cause in err; an error without one becomes ErrAborted with its text.
func CauseOf(err error) *Cause {
	var c *Cause
	if errors.As(err, &c) {
		return c
	}
	return &Cause{Kind: ErrAborted, Peer: -1, From: -1, Text: err.Error(), Err: err}
}

// OpError is the error of every call: which operation of which rank ended, and why.
type OpError struct {
	Op    string // "all-gather"; lower-case verbs for the rest: "open", "close"
	Path  string // "tcp"; empty where no path is involved
	Group string
	Rank  int    // me; -1 where no group is involved
	Peer  int    // at fault, -1 when none
	From  int    // who reported it first, -1 when nobody did
	Seq   uint64 // 0 when the call was never numbered
	Part  uint32
	Err   error // the group's cause, or what is wrong with the call: a sentinel, wrapped with what is known
	Local error // what this rank itself saw, when it differs; its own ErrDevice is this error's kind and scope as well
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("fabric: ")
	b.WriteString(e.Op)
	if e.Seq != 0 {
		fmt.Fprintf(&b, " seq %d", e.Seq)
	}
	if e.Part != 0 {
		fmt.Fprintf(&b, " part %d", e.Part)
	}
	if e.Rank >= 0 {
		fmt.Fprintf(&b, ", rank %d", e.Rank)
	}
	if e.Peer >= 0 && e.Peer != e.Rank {
		fmt.Fprintf(&b, ", peer %d", e.Peer)
	}
	if e.Path != "" {
		b.WriteString(" over " + e.Path)
	}
	if e.Group != "" && e.Group != DefaultGroup {
		fmt.Fprintf(&b, " in group %q", e.Group)
	}
	b.WriteString(": " + e.Err.Error())
	if e.Scope() == ScopeDevice {
		b.WriteString("; buffers of this group's calls may still be written until the device has synchronised")
	}
	if e.Local != nil {
		fmt.Fprintf(&b, " (this rank saw: %v)", e.Local)
	}
	return b.String()
}

func (e *OpError) Unwrap() error { return e.Err }

// Is makes the error ErrDevice where this rank's device failed beside another cause.
func (e *OpError) Is(target error) bool { return target == ErrDevice && e.ownDevice() }

// ownDevice says whether this rank's own device is what it saw; another's writes none of its buffers.
func (e *OpError) ownDevice() bool {
	var saw *Cause
	return errors.As(e.Local, &saw) && saw.Peer == e.Rank && errors.Is(saw.Kind, ErrDevice)
}

// Timeout says whether the cause is ErrTimeout, as net.Error does.
func (e *OpError) Timeout() bool { return errors.Is(e.kind(), ErrTimeout) }

// kind is what decides: the cause's, whatever else the error wraps.
func (e *OpError) kind() error {
	var c *Cause
	if errors.As(e.Err, &c) {
		return c.Kind
	}
	return e.Err
}

// Scope says what is broken after this error.
func (e *OpError) Scope() Scope {
	if e.ownDevice() || errors.Is(e.kind(), ErrDevice) {
		return ScopeDevice
	}
	for _, call := range []error{ErrInvalid, ErrUnsupported, ErrClosed} {
		if errors.Is(e.kind(), call) {
			return ScopeCall
		}
	}
	return ScopeGroup
}

// Invalidf is an ErrInvalid that says what is wrong: the thing, its value, its bound and what to do.
func Invalidf(format string, args ...any) error {
	return &wrapped{ErrInvalid, fmt.Sprintf(format, args...)}
}

// Unsupportedf is an ErrUnsupported that says what cannot and what would be needed.
func Unsupportedf(format string, args ...any) error {
	return &wrapped{ErrUnsupported, fmt.Sprintf(format, args...)}
}

type wrapped struct {
	kind error
	text string
}

func (w *wrapped) Error() string { return w.kind.Error() + ": " + w.text }
func (w *wrapped) Unwrap() error { return w.kind }
