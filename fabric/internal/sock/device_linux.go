package sock

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ToDevice binds a socket to an interface: it then sends and hears on no other. A user who may not is no error: then the
// routes decide.
func ToDevice(fd uintptr, name string) error {
	err := unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, name)
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("bind to interface %s: %w", name, err)
	}
	return nil
}
