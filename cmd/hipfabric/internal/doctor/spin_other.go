//go:build !unix

package doctor

import (
	"errors"
	"net"
)

func spinner(*net.TCPConn) (func([]byte) (int, error), error) { return nil, errors.ErrUnsupported }
