package link

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpInfo is where the kernel writes what it knows, without an allocation a look.
type tcpInfo struct{ unix.TCPInfo }

// Health asks the kernel. Only the driver calls it.
func (c *Conn) Health() Health {
	i := &c.info
	size := uint32(unsafe.Sizeof(i.TCPInfo))
	if _, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(c.fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&i.TCPInfo)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return Health{}
	}
	return Health{Known: true, Unanswered: int(i.Retransmits), Silent: time.Duration(i.Last_ack_recv) * time.Millisecond,
		Retransmitted: int(i.Total_retrans), RoundTrip: time.Duration(i.Rtt) * time.Microsecond,
		Rate: int(i.Delivery_rate), Queued: int(i.Notsent_bytes) + int(i.Unacked)*int(i.Snd_mss)}
}
