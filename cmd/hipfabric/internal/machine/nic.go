package machine

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// NIC is the interface that leads to an address.
type NIC struct {
	Name  string `json:"name"`
	MTU   int    `json:"mtu"`
	Speed string `json:"speed"` // as negotiated: "10000 Mb/s"; "" when the interface does not say
}

// Towards finds the interface on the way to rank 0 at master, host:port or file:PATH; a zero NIC when none is found.
func Towards(master string) NIC {
	local := net.IPv4(127, 0, 0, 1)
	if !strings.HasPrefix(master, "file:") && master != "" {
		conn, err := net.Dial("udp", master) // sends nothing: it only asks for the route
		if err != nil {
			return NIC{}
		}
		local = conn.LocalAddr().(*net.UDPAddr).IP
		_ = conn.Close()
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return NIC{}
	}
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(local) {
				return NIC{Name: i.Name, MTU: i.MTU, Speed: speed(i.Name)}
			}
		}
	}
	return NIC{}
}

func speed(name string) string {
	if strings.HasPrefix(name, "thunderbolt") {
		return thunderbolt()
	}
	if mbits, err := strconv.Atoi(line(filepath.Join("/sys/class/net", name, "speed"))); err == nil && mbits > 0 {
		return fmt.Sprintf("%d Mb/s", mbits)
	}
	return ""
}

func (n NIC) String() string {
	if n.Name == "" {
		return "interface unknown"
	}
	speed := n.Speed
	if speed == "" {
		speed = "not told"
	}
	return fmt.Sprintf("interface %s, MTU %d, speed %s", n.Name, n.MTU, speed)
}

// Counters are monotonic; -1 is what the system does not count.
type Counters struct {
	Retransmits int64 `json:"retransmits"` // TCP segments, of the whole host
	Errors      int64 `json:"errors"`      // packets that the interface lost or found broken, both ways
}

// Count reads the counters of the host and of the interface.
func Count(n NIC) Counters {
	c := Counters{Retransmits: retransmits(), Errors: -1}
	for _, name := range []string{"rx_errors", "tx_errors", "rx_dropped", "tx_dropped"} {
		if v, err := strconv.ParseInt(line(filepath.Join("/sys/class/net", n.Name, "statistics", name)), 10, 64); n.Name != "" && err == nil {
			c.Errors = max(c.Errors, 0) + v
		}
	}
	return c
}

// Since is c after an earlier count, in words.
func (c Counters) Since(before Counters) string {
	return fmt.Sprintf("TCP retransmits %s, interface errors and drops %s", change(before.Retransmits, c.Retransmits), change(before.Errors, c.Errors))
}

func change(before, now int64) string {
	if before < 0 || now < 0 {
		return "not counted here"
	}
	return fmt.Sprintf("%d before, %d after (%+d)", before, now, now-before)
}

func retransmits() int64 {
	b, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		return -1
	}
	return snmp(string(b), "Tcp:", "RetransSegs")
}

// snmp finds a counter in the kernel's two lines a protocol: names, then values.
func snmp(text, protocol, name string) int64 {
	var names []string
	for l := range strings.Lines(text) {
		fields := strings.Fields(l)
		if len(fields) == 0 || fields[0] != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == name && i < len(fields) {
				if v, err := strconv.ParseInt(fields[i], 10, 64); err == nil {
					return v
				}
			}
		}
	}
	return -1
}
