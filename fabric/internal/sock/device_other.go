//go:build !linux

package sock

// ToDevice binds a socket to an interface where the system can; on this one the routes decide.
func ToDevice(uintptr, string) error { return nil }
