package hipgo

import (
	"errors"
	"fmt"
	"os"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// ErrNoGPU says that the runtime is there and has no device to offer. It is errors.ErrUnsupported.
var ErrNoGPU = fmt.Errorf("no GPU: %w", errors.ErrUnsupported)

// ErrSecondRuntime says that the process already has another HIP runtime, and two break each other. It comes in a *LoadError.
var ErrSecondRuntime = driver.ErrSecond

// LoadError is a runtime that could not be loaded: which file, and which entry point it lacks or why.
type LoadError = driver.LoadError

// Error is a call that HIP refused, by HIP's own name and number.
type Error struct {
	Call    string // hipMalloc
	Code    int    // 2
	Library string // the file of the runtime

	half bool // a part of the call was queued all the same
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d), %s", e.Call, codeName(e.Code), e.Code, e.Library)
}

// Is makes codes 100 and 101 ErrNoGPU, and those and 801 errors.ErrUnsupported.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoGPU:
		return e.Code == codeNoDevice || e.Code == codeInvalidDevice
	case errors.ErrUnsupported:
		return e.Code == codeNoDevice || e.Code == codeInvalidDevice || e.Code == codeNotSupported
	}
	return false
}

// Invalid says that the arguments were wrong, and nothing was queued: a bad value, or a handle that is none or no more.
func (e *Error) Invalid() bool {
	switch e.Code {
	case codeInvalidValue, codeInvalidHandle, codeContextDestroyed:
		return !e.half
	}
	return false
}

// UnsupportedError is a device or runtime that lacks something. It is errors.ErrUnsupported.
type UnsupportedError struct {
	Device  string // as Device.String, or the library
	Feature string // what it cannot
	Need    string // what would do
}

func (e *UnsupportedError) Error() string {
	if e.Need == "" {
		return fmt.Sprintf("hipgo: %s: %s", e.Device, e.Feature)
	}
	return fmt.Sprintf("hipgo: %s: %s; %s", e.Device, e.Feature, e.Need)
}

// Unwrap is errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// check makes an error of a code.
func (r *Runtime) check(call string, code int) error {
	if code == 0 {
		return nil
	}
	return r.fail(call, code)
}

// fail is apart from check, so that a hot call inlines the comparison only.
//
//go:noinline
func (r *Runtime) fail(call string, code int) error {
	return &Error{Call: call, Code: code, Library: r.library}
}

// argumentError is a call that was refused here, before HIP saw it.
type argumentError struct{ error }

// Invalid is true.
func (argumentError) Invalid() bool { return true }

func (e argumentError) Unwrap() error { return errors.Unwrap(e.error) }

func closed(what string) error { return invalid("%s: %w", what, os.ErrClosed) }

func invalid(format string, values ...any) error {
	return argumentError{fmt.Errorf("hipgo: "+format, values...)}
}
