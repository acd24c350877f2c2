package hiptest

import (
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver/soft"
)

// Fault is a failure to plant. Exactly one of Call, Async, Copy and Lost says which.
type Fault struct {
	Call  string    // this HIP function fails with Code, without effect, or with 0 works, after Delay
	Async int       // an operation fails with this code, which the device's calls give from then on
	Copy  CopyFault // a copy goes wrong
	Lost  bool      // Device is lost now: its calls give Code (0: 719), what is parked ends

	Nth    int           // which call or operation from now; 0: the next
	Times  int           // how many in a row; 0: one; -1: all from there
	Code   int           // of Call, of Lost
	Delay  time.Duration // of CopyLate, 0: until Land; of Call: for how long it blocks
	Device int           // of Lost
	On     *Queue        // of Async and Copy: only there
}

// CopyFault is how a copy goes wrong.
type CopyFault int

// What copies have been seen to do.
const (
	CopyDropped CopyFault = iota + 1 // it ends, and its bytes never move
	CopyLost                         // its bytes move, and it never ends
	CopyLate                         // bytes and end come after Delay, or at Land
)

func (f Fault) spec() (string, error) {
	var kind []string
	if f.Call != "" {
		kind = append(kind, fmt.Sprintf("call=%s code=%d us=%d", f.Call, f.Code, f.Delay/time.Microsecond))
	}
	if f.Async != 0 {
		kind = append(kind, fmt.Sprintf("async=%d", f.Async))
	}
	switch f.Copy {
	case 0:
	case CopyDropped:
		kind = append(kind, "copy=drop")
	case CopyLost:
		kind = append(kind, "copy=lost")
	case CopyLate:
		kind = append(kind, fmt.Sprintf("copy=late us=%d", f.Delay/time.Microsecond))
	default:
		return "", fmt.Errorf("hiptest: a Fault has no Copy %d", f.Copy)
	}
	if f.Lost {
		kind = append(kind, fmt.Sprintf("device=%d lost=1 code=%d", f.Device, f.Code))
	}
	if len(kind) != 1 {
		return "", fmt.Errorf("hiptest: a Fault is one of Call, Async, Copy and Lost; this is %d of them", len(kind))
	}
	spec := fmt.Sprintf("%s nth=%d times=%d", kind[0], max(f.Nth, 1), max(0, times(f.Times)))
	if f.On != nil {
		spec += fmt.Sprintf(" queue=%d", f.On.id)
	}
	return spec, nil
}

func times(n int) int {
	if n == 0 {
		return 1
	}
	return n // -1: 0 in the text, which is always
}

// Fail plants a failure.
func (w *World) Fail(f Fault) error {
	spec, err := f.spec()
	if err != nil {
		return err
	}
	return soft.Fault(spec)
}

// Land lets copies that are late without a Delay move their bytes and end.
func (w *World) Land() { _ = soft.Do("land", 0, 0) }
