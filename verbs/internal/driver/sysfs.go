package driver

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// slots reads a GID table slot by slot, as libraries without ibv_query_gid_table need it: the addresses by query, types and
// interfaces from root, which is /sys/class/infiniband/DEVICE/ports.
func slots(root string, counts []int, query func(port, index int) ([16]byte, syscall.Errno)) ([]GID, syscall.Errno) {
	var all []GID
	for i, count := range counts {
		for index := range count {
			gid, e := query(i+1, index)
			if e != 0 {
				return nil, e
			}
			kind, there := gidType(root, i+1, index)
			if gid == [16]byte{} || !there {
				continue
			}
			g := GID{GID: gid, Port: uint32(i + 1), Index: uint32(index), Type: kind}
			g.NetDev = attribute(root, i+1, "ndevs", index)
			if netdev, err := net.InterfaceByName(g.NetDev); err == nil {
				g.Interface = uint32(netdev.Index)
			}
			all = append(all, g)
		}
	}
	return all, 0
}

// gidType is none for an empty slot, which the kernel refuses to read.
func gidType(root string, port, index int) (kind uint32, there bool) {
	switch attribute(root, port, "types", index) {
	case "":
		return 0, false
	case "RoCE v2":
		return 2, true
	}
	layer, _ := os.ReadFile(filepath.Join(root, strconv.Itoa(port), "link_layer")) // absent in old kernels, which know InfiniBand alone
	if strings.TrimSpace(string(layer)) == "Ethernet" {
		return 1, true
	}
	return 0, true
}

func attribute(root string, port int, name string, index int) string {
	b, err := os.ReadFile(filepath.Join(root, strconv.Itoa(port), "gid_attrs", name, strconv.Itoa(index)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
