package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// driver is the name of what drives an interface.
func driver(name string) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
		if info, err := unix.IoctlGetEthtoolDrvinfo(fd, name); err == nil {
			return unix.ByteSliceToString(info.Driver[:])
		}
	}
	if path, err := filepath.EvalSymlinks(sys(name, "device/driver")); err == nil {
		return filepath.Base(path)
	}
	return ""
}

// coalesce asks the kernel, by ethtool's netlink family, after how many microseconds a received packet interrupts at the
// latest. Drivers that do not moderate, or cannot be asked, give false.
func coalesce(index int) (usecs int, adaptive, ok bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return 0, false, false
	}
	defer func() { _ = unix.Close(fd) }()
	if unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}) != nil ||
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return 0, false, false
	}
	family, err := ask(fd, unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, attribute(unix.CTRL_ATTR_FAMILY_NAME, []byte("ethtool\x00")))
	if err != nil || len(family[unix.CTRL_ATTR_FAMILY_ID]) != 2 {
		return 0, false, false
	}
	device := attribute(unix.ETHTOOL_A_HEADER_DEV_INDEX, binary.NativeEndian.AppendUint32(nil, uint32(index)))
	values, err := ask(fd, binary.NativeEndian.Uint16(family[unix.CTRL_ATTR_FAMILY_ID]), unix.ETHTOOL_MSG_COALESCE_GET,
		attribute(unix.ETHTOOL_A_COALESCE_HEADER|unix.NLA_F_NESTED, device))
	if err != nil {
		return 0, false, false
	}
	rx := values[unix.ETHTOOL_A_COALESCE_RX_USECS]
	if len(rx) != 4 {
		return 0, false, false
	}
	return int(binary.NativeEndian.Uint32(rx)), bytes.Equal(values[unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX], []byte{1}), true
}

const genericHeader = 4 // command, version and two reserved bytes

var errNetlink = errors.New("the kernel's answer is no message that was asked for")

// ask sends one request of generic netlink and gives the answer's attributes.
func ask(fd int, family uint16, command uint8, attributes []byte) (map[uint16][]byte, error) {
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+genericHeader+len(attributes)))
	m = binary.NativeEndian.AppendUint16(m, family)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST)
	m = append(m, make([]byte, 8)...) // sequence and sender, which one request a socket does not need
	m = append(m, command, 1, 0, 0)
	if err := unix.Sendto(fd, append(m, attributes...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return nil, err
	}
	return attributesOf(answer[:n], family)
}

// attributesOf reads a message of family: its attributes by type, the nested ones left whole.
func attributesOf(m []byte, family uint16) (map[uint16][]byte, error) {
	const head = unix.NLMSG_HDRLEN + genericHeader
	if len(m) < head || binary.NativeEndian.Uint16(m[4:]) != family {
		return nil, errNetlink // an error message has another type
	}
	found := map[uint16][]byte{}
	for rest := m[head:]; len(rest) >= unix.SizeofNlAttr; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < unix.SizeofNlAttr || size > len(rest) {
			return nil, errNetlink
		}
		found[binary.NativeEndian.Uint16(rest[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = rest[unix.SizeofNlAttr:size]
		rest = rest[min(aligned(size), len(rest)):]
	}
	return found, nil
}

func attribute(kind uint16, value []byte) []byte {
	size := unix.SizeofNlAttr + len(value)
	a := binary.NativeEndian.AppendUint16(nil, uint16(size))
	a = binary.NativeEndian.AppendUint16(a, kind)
	a = append(a, value...)
	return append(a, make([]byte, aligned(size)-size)...)
}

func aligned(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }
