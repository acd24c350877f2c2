package bootstrap

import "golang.org/x/sys/unix"

// hostIDs names the running kernel; darwin has one network namespace.
func hostIDs() (boot, net string) {
	boot, _ = unix.Sysctl("kern.bootsessionuuid")
	return boot, ""
}
