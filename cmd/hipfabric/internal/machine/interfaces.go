package machine

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// Interface is what this host's system says of one network interface.
type Interface struct {
	Name       string   `json:"name"`
	Addresses  []string `json:"addresses"` // with their prefix length
	MTU        int      `json:"mtu"`
	Up         bool     `json:"up"` // switched on and connected
	Loopback   bool     `json:"loopback"`
	Container  bool     `json:"container"` // by its name a bridge or a port of containers or virtual machines
	Wireless   bool     `json:"wireless"`
	Driver     string   `json:"driver"`      // "" when not told, as the fields below
	Mbits      int      `json:"mbits"`       // as negotiated; 0 when not told
	Duplex     string   `json:"duplex"`      // "full", "half"
	RxUsecs    int      `json:"rx_usecs"`    // interrupt moderation in microseconds; -1 when not told
	AdaptiveRx bool     `json:"adaptive_rx"` // the moderation follows the load
	RPFilter   int      `json:"rp_filter"`   // in force for IPv4: 0 off, 1 strict, 2 loose; -1 when not told
}

// Interfaces lists those of this host, in the system's order.
func Interfaces() ([]Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	found := make([]Interface, 0, len(list))
	for _, i := range list {
		found = append(found, describe(i))
	}
	return found, nil
}

func describe(i net.Interface) Interface {
	d := Interface{Name: i.Name, MTU: i.MTU, Up: connected(i), Loopback: i.Flags&net.FlagLoopback != 0, Container: container(i.Name),
		Driver: driver(i.Name), Duplex: line(sys(i.Name, "duplex")), Mbits: mbits(i.Name), RPFilter: rpFilter(i.Name), RxUsecs: -1}
	d.Wireless = exists(sys(i.Name, "wireless"))
	if d.Duplex == "unknown" {
		d.Duplex = ""
	}
	if usecs, adaptive, ok := coalesce(i.Index); ok {
		d.RxUsecs, d.AdaptiveRx = usecs, adaptive
	}
	addresses, _ := i.Addrs()
	for _, a := range addresses {
		d.Addresses = append(d.Addresses, a.String())
	}
	return d
}

// connected asks for the carrier itself: the flag of a link that was just plugged in may lag by a second.
func connected(i net.Interface) bool {
	carrier := line(sys(i.Name, "carrier"))
	return i.Flags&net.FlagUp != 0 && (carrier == "1" || carrier == "" && i.Flags&net.FlagRunning != 0)
}

func sys(name, file string) string { return filepath.Join("/sys/class/net", name, file) }

func exists(path string) bool {
	found, err := filepath.Glob(path)
	return err == nil && len(found) > 0
}

// container goes by the names that container engines, their network plug-ins and libvirt give.
func container(name string) bool {
	for _, prefix := range []string{"docker", "br-", "veth", "cni", "flannel", "cali", "cilium", "lxc", "lxdbr", "podman", "virbr", "vnet", "kube-", "weave"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// mbits is the negotiated speed; a Thunderbolt or USB4 link tells it a lane, on the device above.
func mbits(name string) int {
	if n, err := strconv.Atoi(line(sys(name, "speed"))); err == nil && n > 0 {
		return n
	}
	device, err := filepath.EvalSymlinks(sys(name, "device"))
	if err != nil {
		return 0
	}
	above := filepath.Dir(device)
	return thunderboltMbits(line(filepath.Join(above, "tx_speed")), line(filepath.Join(above, "tx_lanes")))
}

// thunderboltMbits reads "20.0 Gb/s" and "2".
func thunderboltMbits(speed, lanes string) int {
	number, ok := strings.CutSuffix(speed, " Gb/s")
	gbits, err := strconv.ParseFloat(number, 64)
	n, err2 := strconv.Atoi(lanes)
	if !ok || err != nil || err2 != nil || !(gbits > 0 && gbits <= 1000) || n < 1 || n > 16 {
		return 0
	}
	return int(gbits * 1000 * float64(n))
}

// rpFilter is the stricter of the interface's own and the common setting, as the kernel takes it.
func rpFilter(name string) int {
	value := -1
	for _, of := range []string{"all", name} {
		if n, err := strconv.Atoi(line(filepath.Join("/proc/sys/net/ipv4/conf", of, "rp_filter"))); err == nil {
			value = max(value, n)
		}
	}
	return value
}

// Carries names the interface that has an address, without prefix or zone; nil when none has.
func Carries(list []Interface, address string) *Interface {
	want := net.ParseIP(address)
	for i := range list {
		for _, a := range list[i].Addresses {
			if ip, _, err := net.ParseCIDR(a); err == nil && ip.Equal(want) {
				return &list[i]
			}
		}
	}
	return nil
}

// Tally is what an interface has counted so far, by the system's names: errors, drops, and changes of the carrier.
func Tally(name string) map[string]int64 {
	counts := map[string]int64{}
	add := func(key, path string) {
		if v, err := strconv.ParseInt(line(path), 10, 64); err == nil {
			counts[key] = v
		}
	}
	for _, key := range []string{"rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors"} {
		add(key, sys(name, filepath.Join("statistics", key)))
	}
	add("carrier_changes", sys(name, "carrier_changes"))
	return counts
}

// Virtual says whether no hardware limits or negotiates the interface's speed.
func (i Interface) Virtual() bool {
	switch i.Driver {
	case "", "veth", "tun", "bridge", "virtio_net", "dummy", "macvlan", "vxlan", "wireguard":
		return true
	}
	return i.Loopback
}
