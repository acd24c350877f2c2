package link

import (
	"time"

	"golang.org/x/sys/unix"
)

// Health asks the kernel. Only the driver calls it.
func (c *Conn) Health() Health {
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return Health{}
	}
	return Health{Known: true, Unanswered: int(info.Retransmits), Silent: time.Duration(info.Last_ack_recv) * time.Millisecond,
		Retransmitted: int(info.Total_retrans), RoundTrip: time.Duration(info.Rtt) * time.Microsecond}
}
