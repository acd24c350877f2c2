package bootstrap

import (
	"os"
	"strings"
)

// hostIDs names the running kernel and this process's network namespace.
func hostIDs() (boot, net string) {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	net, _ = os.Readlink("/proc/self/ns/net")
	return strings.TrimSpace(string(b)), net
}
