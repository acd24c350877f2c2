package driver

import (
	"os"
	"path/filepath"
	"strings"
)

// absence says why a library lists no device, from sys, which is /sys.
func absence(sys string) string {
	devices := entries(filepath.Join(sys, "class", "infiniband"))
	_, err := os.Stat(filepath.Join(sys, "class", "infiniband_verbs"))
	verbs := err == nil
	switch {
	case len(devices) > 0 && verbs:
		return "the kernel has " + strings.Join(devices, ", ") + ", and libibverbs no provider for it: install ibverbs-providers (rdma-core)"
	case len(devices) > 0:
		return "the kernel has " + strings.Join(devices, ", ") + ", and not what programs reach it by: modprobe ib_uverbs"
	case verbs:
		return "the kernel knows no HCA: load its driver (lspci -k shows it); soft RoCE: rdma link add rxe0 type rxe netdev eth0"
	}
	return "the kernel has no RDMA: modprobe ib_uverbs, and load the HCA's driver (lspci -k shows it)"
}

func entries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names
}
