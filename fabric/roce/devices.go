package roce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	maxSelector  = 80 // bytes
	maxPort      = 255
	maxGIDIndex  = 65535
	devicesForms = "dev, dev:port or dev:port:gid is needed (mlx5 is all that begin so, =mlx5_1 that one), with ^ before it to exclude"
)

// selector is an element of Config.HCAs.
type selector struct {
	at             int    // in the list
	text           string // as it stands there
	exclude, exact bool
	device         string
	port           int // 0: all
	gid            int // -1: by type and address
}

// selection is the list.
type selection []selector

// picked is a port that the list chooses, and the GIDs that it pins.
type picked struct {
	port Port
	pins []selector
}

func (p *picked) name() string { return portName(p.port.Device, p.port.Port) }

func parseDevices(texts []string) (selection, error) {
	if len(texts) > MaxDevices {
		return nil, fabric.Invalidf("HCAs has %d elements; at most %d are allowed", len(texts), MaxDevices)
	}
	var list selection
	for i, text := range texts {
		s, err := parseDevice(text)
		if err != nil {
			return nil, fabric.Invalidf("HCAs[%d] is %.*q: %v; %s", i, maxSelector, text, err, devicesForms)
		}
		s.at, s.text = i, text
		list = append(list, s)
	}
	return list, nil
}

func parseDevice(text string) (selector, error) {
	s := selector{gid: -1}
	if len(text) > maxSelector {
		return s, fmt.Errorf("it has %d bytes, and at most %d are allowed", len(text), maxSelector)
	}
	text, s.exclude = strings.CutPrefix(text, "^")
	text, s.exact = strings.CutPrefix(text, "=")
	parts := strings.Split(text, ":")
	s.device = parts[0]
	switch {
	case text == "":
		return s, fmt.Errorf("it names nothing")
	case !nameable(s.device) || strings.ContainsAny(s.device, "^=,"):
		return s, fmt.Errorf("no device has such a name")
	case len(parts) > 3:
		return s, fmt.Errorf("it has %d parts", len(parts))
	case len(parts) == 3 && s.exclude:
		return s, fmt.Errorf("a GID cannot be excluded by its index, which changes with the host's addresses")
	}
	var err error
	if len(parts) > 1 {
		if s.port, err = strconv.Atoi(parts[1]); err != nil || s.port < 1 || s.port > maxPort {
			return s, fmt.Errorf("port %q is not in 1..%d", parts[1], maxPort)
		}
	}
	if len(parts) > 2 {
		if s.gid, err = strconv.Atoi(parts[2]); err != nil || s.gid < 0 || s.gid > maxGIDIndex {
			return s, fmt.Errorf("GID index %q is not in 0..%d", parts[2], maxGIDIndex)
		}
	}
	return s, nil
}

// nameable says whether a device's name can stand in settings, adverts and messages.
func nameable(device string) bool {
	return device != "" && len(device) <= maxDeviceName && !strings.ContainsFunc(device, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' })
}

// name is the selector's, for messages.
func (s *selector) name() string { return fmt.Sprintf("HCAs[%d] %q", s.at, s.text) }

func (s *selector) names(device string) bool {
	if s.exact {
		return device == s.device
	}
	return strings.HasPrefix(device, s.device)
}

func (s *selector) matches(p *Port) bool {
	return s.names(p.Device) && (s.port == 0 || s.port == p.Port)
}

// pick gives the ports that the list chooses, in the order of those that choose, and why others are left out. Errors: ErrInvalid for one
// that chooses nothing, and for a list that leaves nothing.
func (l selection) pick(ports []Port) (chosen []picked, left []string, err error) {
	choosers, taken := l.choosers(), make([]bool, len(ports))
	for _, s := range choosers {
		if !slices.ContainsFunc(ports, func(p Port) bool { return s.matches(&p) }) {
			return nil, nil, s.unknown(ports)
		}
		for i := range ports {
			if p := &ports[i]; !taken[i] && s.matches(p) {
				taken[i] = true
				if by := l.excluding(p); by != nil {
					left = append(left, portName(p.Device, p.Port)+" is excluded by "+by.name())
					continue
				}
				chosen = append(chosen, picked{*p, pinning(choosers, p)})
			}
		}
	}
	for i := range ports {
		if !taken[i] {
			left = append(left, portName(ports[i].Device, ports[i].Port)+" is not in HCAs")
		}
	}
	for _, s := range l {
		if s.exclude && !slices.ContainsFunc(ports, func(p Port) bool { return s.matches(&p) }) {
			left = append(left, s.name()+" excludes nothing that is there")
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fabric.Invalidf("HCAs %q leaves no port; there are: %s", l.texts(), listed(portNames(ports)))
	}
	return chosen, left, nil
}

// choosers are the selectors that choose; where there are none, one that chooses all.
func (l selection) choosers() selection {
	choosers := slices.DeleteFunc(slices.Clone(l), func(s selector) bool { return s.exclude })
	if len(choosers) == 0 {
		return selection{{gid: -1}}
	}
	return choosers
}

func (l selection) excluding(p *Port) *selector {
	for i := range l {
		if l[i].exclude && l[i].matches(p) {
			return &l[i]
		}
	}
	return nil
}

func pinning(choosers selection, p *Port) (pins []selector) {
	for _, s := range choosers {
		if s.gid >= 0 && s.matches(p) {
			pins = append(pins, s)
		}
	}
	return pins
}

func (l selection) texts() (all []string) {
	for _, s := range l {
		all = append(all, s.text)
	}
	return all
}

// unknown is the error of a selector that finds nothing.
func (s *selector) unknown(ports []Port) error {
	var devices, there []string
	for i := range ports {
		p := &ports[i]
		devices = append(devices, p.Device)
		if s.names(p.Device) {
			there = append(there, portName(p.Device, p.Port))
		}
	}
	devices = slices.Compact(devices)
	switch near := nearest(s.device, devices); {
	case len(there) > 0:
		return fabric.Invalidf("%s: there is no such port; there are: %s", s.name(), listed(there))
	case near != "":
		return fabric.Invalidf("%s: there is no such device; did you mean %s? There are: %s", s.name(), near, listed(devices))
	default:
		return fabric.Invalidf("%s: there is no such device; there are: %s", s.name(), listed(devices))
	}
}

func portName(device string, port int) string { return fmt.Sprintf("%s:%d", device, port) }

func portNames(ports []Port) (all []string) {
	for i := range ports {
		all = append(all, portName(ports[i].Device, ports[i].Port))
	}
	return all
}
