package rdma

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var address = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// pci is where a device is on the bus; nil where it is on none.
func (s *System) pci(device string) *PCI {
	path, err := filepath.EvalSymlinks(s.path(infiniband, device, "device"))
	if err != nil || !address.MatchString(filepath.Base(path)) {
		return nil
	}
	p := &PCI{Address: filepath.Base(path), NUMA: -1, Redirect: []string{}}
	dir := filepath.Join(infiniband, device, "device")
	p.GTs, p.MaxGTs = transfers(s.line(dir, "current_link_speed")), transfers(s.line(dir, "max_link_speed"))
	p.Lanes, _ = strconv.Atoi(s.line(dir, "current_link_width"))
	p.MaxLanes, _ = strconv.Atoi(s.line(dir, "max_link_width"))
	if n, err := strconv.Atoi(s.line(dir, "numa_node")); err == nil {
		p.NUMA = n
	}
	p.IOMMU = s.line(dir, "iommu_group/type")
	for bridge := filepath.Dir(path); address.MatchString(filepath.Base(bridge)); bridge = filepath.Dir(bridge) {
		space, err := os.ReadFile(filepath.Join(bridge, "config"))
		if err != nil || len(space) <= extended {
			continue // the kernel gives the rest to root alone
		}
		p.ACSTold = true
		if redirects(space) {
			p.Redirect = append(p.Redirect, filepath.Base(bridge))
		}
	}
	return p
}

// transfers reads "16.0 GT/s PCIe".
func transfers(text string) float64 {
	number, _, _ := strings.Cut(text, " ")
	gts, err := strconv.ParseFloat(number, 64)
	if err != nil || gts < 0 || gts > 1000 {
		return 0
	}
	return gts
}

const (
	extended    = 0x100 // where a function's extended capabilities begin
	acs         = 0x0d
	acsControl  = 6
	redirection = 1<<2 | 1<<3 // of requests and of completions between peers
)

// redirects reads a bridge's ACS control.
func redirects(space []byte) bool {
	at := extended
	for range 64 { // a broken list may have a ring
		if at < extended || at+8 > len(space) {
			return false
		}
		head := binary.LittleEndian.Uint32(space[at:])
		if head&0xffff == acs {
			return binary.LittleEndian.Uint16(space[at+acsControl:])&redirection != 0
		}
		at = int(head >> 20)
	}
	return false
}

// iommu is how the kernel's IOMMU treats devices that nothing else is said of.
func (s *System) iommu() string {
	if len(s.list("sys/class/iommu")) == 0 {
		return "off"
	}
	line := " " + s.line("proc/cmdline") + " "
	if strings.Contains(line, " iommu=pt ") || strings.Contains(line, " iommu.passthrough=1 ") {
		return "passthrough"
	}
	return "on"
}
