package bootstrap

import (
	"os"
	"strings"
)

// hostIDs names the running kernel and the network namespace in which this thread opens sockets.
func hostIDs() (boot, net string) {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	net, _ = os.Readlink("/proc/thread-self/ns/net")
	return strings.TrimSpace(string(b)), net
}
