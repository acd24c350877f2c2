//go:build !linux && !darwin

package sock

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

var errOS = fmt.Errorf("tcp transport on %s: %w: linux or darwin is needed", runtime.GOOS, errors.ErrUnsupported)

// Tune is not to be had on this system.
func Tune(*net.TCPConn, Use) error { return errOS }

// Take is not to be had on this system.
func Take(*net.TCPConn) (int, error) { return -1, errOS }

// Limit is not to be had on this system.
func Limit(*net.TCPConn, Options) error { return errOS }
