package sock

import "golang.org/x/sys/unix"

// Carrier says whether an interface is up and has a link, or cannot be asked.
func Carrier(name string) bool {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return true
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err != unix.ENODEV //nolint:errorlint // a bare errno
	}
	const both = unix.IFF_UP | unix.IFF_RUNNING
	return request.Uint16()&both == both
}
