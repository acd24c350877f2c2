package doctor

import (
	"net"

	"golang.org/x/sys/unix"
)

// tell adds what the kernel knows of a sender's connection.
func (h *half) tell(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		h.Segments = max(h.Segments, 0) + int64(info.Data_segs_out)
		h.Retransmits = max(h.Retransmits, 0) + int64(info.Total_retrans)
		h.MSS, h.PathMTU = int(info.Snd_mss), int(info.Pmtu)
	})
}
