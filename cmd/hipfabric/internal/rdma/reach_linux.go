package rdma

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const maxPayload = 65_000 // of a packet that is sent to find whether it passes

// packets sends a small packet and one of size bytes that must not be fragmented to a closed port, and listens for the peer's word
// that the port is closed. A peer that does not say so tells nothing.
func packets(ctx context.Context, to netip.Addr, size int) (answers bool, fits string, pathMTU int) {
	c, err := whole(ctx, to)
	if err != nil {
		return false, "", 0
	}
	defer func() { _ = c.Close() }()
	answers, _ = echoes(ctx, c, 1)
	if payload := size - headers(to) - 8; payload > 0 && payload <= maxPayload {
		passes, err := echoes(ctx, c, payload)
		switch {
		case errors.Is(err, syscall.EMSGSIZE):
			fits = TooLarge
		case passes:
			fits = Passes
		case answers:
			fits = Lost
		}
	}
	return answers, fits, known(c, to)
}

// whole is a connection whose packets are not fragmented.
func whole(ctx context.Context, to netip.Addr) (*net.UDPConn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		level, option, do := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
		if to.Is6() {
			level, option, do = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
		}
		var set error
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), level, option, do) })
		return errors.Join(err, set)
	}}
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(to.String(), closedPort))
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// echoes says whether the peer answered that its port is closed.
func echoes(ctx context.Context, c *net.UDPConn, payload int) (bool, error) {
	for range attempts {
		if ctx.Err() != nil {
			return false, nil
		}
		if _, err := c.Write(make([]byte, payload)); errors.Is(err, syscall.ECONNREFUSED) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		_ = c.SetReadDeadline(time.Now().Add(answerWait))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			return true, nil
		}
	}
	return false, nil
}

// known is the largest packet of the way, as the kernel has learnt it.
func known(c *net.UDPConn, to netip.Addr) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if to.Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu := 0
	if raw.Control(func(fd uintptr) { mtu, err = unix.GetsockoptInt(int(fd), level, option) }) != nil || err != nil {
		return 0
	}
	return mtu
}

// neighbour asks the kernel whether an address on one of its links has answered.
func neighbour(a netip.Addr) string {
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	table, err := syscall.NetlinkRIB(unix.RTM_GETNEIGH, family)
	if err != nil {
		return ""
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return ""
	}
	for _, m := range messages {
		if state, ok := state(m, a); ok {
			return state
		}
	}
	return ""
}

// state reads one entry of the kernel's table, if it is the address's.
func state(m syscall.NetlinkMessage, a netip.Addr) (string, bool) {
	if m.Header.Type != unix.RTM_NEWNEIGH || len(m.Data) < unix.SizeofNdMsg {
		return "", false
	}
	for rest := m.Data[unix.SizeofNdMsg:]; len(rest) >= unix.SizeofRtAttr; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < unix.SizeofRtAttr || size > len(rest) {
			return "", false
		}
		if ip, ok := netip.AddrFromSlice(rest[unix.SizeofRtAttr:size]); ok && binary.NativeEndian.Uint16(rest[2:]) == unix.NDA_DST && ip == a.WithZone("") {
			if binary.NativeEndian.Uint16(m.Data[8:])&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) != 0 {
				return "silent", true
			}
			return "answers", true
		}
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	return "", false
}
