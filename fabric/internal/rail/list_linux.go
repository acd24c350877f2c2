package rail

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kinds fills in which interfaces are bridges and which belong to another. Netlink rather than /sys, which shows the
// network namespace in which it was mounted.
func kinds(all []Interface) error {
	table, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return fmt.Errorf("list of network interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return fmt.Errorf("list of network interfaces: %w", err)
	}
	byIndex := map[int]*Interface{}
	for i := range all {
		byIndex[all[i].Index] = &all[i]
	}
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		f := byIndex[int(int32(binary.NativeEndian.Uint32(m.Data[4:])))]
		attributes, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil || f == nil {
			continue
		}
		for _, a := range attributes {
			switch a.Attr.Type {
			case unix.IFLA_MASTER:
				f.Enslaved = true
			case unix.IFLA_LINKINFO:
				f.Bridge = kindOf(a.Value) == "bridge"
			}
		}
	}
	return nil
}

// kindOf finds IFLA_INFO_KIND among nested attributes.
func kindOf(b []byte) string {
	for len(b) >= unix.SizeofRtAttr {
		n, t := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if t == unix.IFLA_INFO_KIND {
			return strings.TrimRight(string(b[unix.SizeofRtAttr:n]), "\x00")
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	return ""
}
