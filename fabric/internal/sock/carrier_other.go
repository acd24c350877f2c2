//go:build !linux

package sock

import "net"

// Carrier says whether an interface is up and has a link, or cannot be asked.
func Carrier(name string) bool {
	i, err := net.InterfaceByName(name)
	return err != nil || i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0
}
