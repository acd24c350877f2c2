package verbs

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// ErrNoDevice says that libibverbs is there and lists no device. It is errors.ErrUnsupported.
var ErrNoDevice = fmt.Errorf("no RDMA device: %w", errors.ErrUnsupported)

// ErrFlushed says that work never ran, or its outcome is unknown, because its queue pair had failed: a consequence, no cause.
var ErrFlushed = errors.New("flushed")

// LoadError is a libibverbs that could not be loaded: which file, and which entry point it lacks or why.
type LoadError = driver.LoadError

// Error is a call that libibverbs or the device refused. It unwraps to its errno.
type Error struct {
	Call   string // ibv_reg_mr
	Device string // rxe0, or "" where it is about none
	Errno  syscall.Errno
}

func (e *Error) Error() string {
	if e.Device == "" {
		return fmt.Sprintf("%s: %v (errno %d)", e.Call, e.Errno, int(e.Errno))
	}
	return fmt.Sprintf("%s on %s: %v (errno %d)", e.Call, e.Device, e.Errno, int(e.Errno))
}

// Unwrap gives the errno.
func (e *Error) Unwrap() error { return e.Errno }

// UnsupportedError is a device or library that lacks something. It is errors.ErrUnsupported.
type UnsupportedError struct {
	Device  string // or the library
	Feature string // what it cannot
	Need    string // what would do
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("verbs: %s: %s; %s", e.Device, e.Feature, e.Need)
}

// Unwrap is errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// CompletionError is work that failed after it was posted. A flushed one is ErrFlushed.
type CompletionError struct {
	Device    string
	QPN       uint32
	WRID      uint64
	Status    Status
	VendorErr uint32
}

func (e *CompletionError) Error() string {
	return fmt.Sprintf("work %#x of queue pair %#x on %s: %s (status %d, vendor error %#x)", e.WRID, e.QPN, e.Device, e.Status, int(e.Status), e.VendorErr)
}

// Is makes a flushed one ErrFlushed.
func (e *CompletionError) Is(target error) bool {
	return target == ErrFlushed && e.Status == StatusFlushed
}

// Cause gives the first error that is not ErrFlushed; where all are, the first; nil of none. Nils are passed over.
func Cause(errs ...error) error {
	var flushed error
	for _, err := range errs {
		switch {
		case err == nil:
		case !errors.Is(err, ErrFlushed):
			return err
		case flushed == nil:
			flushed = err
		}
	}
	return flushed
}

// argumentError is a call that was refused here, before the device saw it.
type argumentError struct{ error }

// Invalid is true.
func (argumentError) Invalid() bool { return true }

func (e argumentError) Unwrap() error { return errors.Unwrap(e.error) }

func invalid(format string, values ...any) error {
	return argumentError{fmt.Errorf("verbs: "+format, values...)}
}

func closed(what string) error { return invalid("%s: %w", what, os.ErrClosed) }
