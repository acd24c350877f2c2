package verbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type (
	// SeamPort is a device's port.
	SeamPort = struct {
		Device   string
		Port     int // from 1
		Active   bool
		State    string // of one that could not be asked: why
		Ethernet bool
		MTU      int   // active, bytes of payload a packet
		Rate     int64 // bits a second; 0: not known
		GIDs     []SeamGID
	}
	// SeamGID is an address of a port. Its index is worth until the addresses of the host change.
	SeamGID = struct {
		Index   int
		Version int // of RoCE: 1 or 2; 0: InfiniBand
		Addr    [16]byte
		NetDev  string // "" where there is none in this network namespace
	}
)

// Ports lists the ports of all channel adapters, whatever their state, by device and port. Each device is opened for it, and closed; of one
// that cannot be, port 1 is listed as not active, and its State says why. Errors: ErrNoDevice.
func (s *Seam) Ports() ([]SeamPort, error) {
	devices, err := s.l.Devices()
	if err != nil {
		return nil, err
	}
	var all []SeamPort
	var others []string
	for _, d := range devices {
		if !d.IsChannelAdapter() {
			others = append(others, d.d.Name)
			continue
		}
		all = append(all, d.ports()...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("verbs: %w: %s speak neither RoCE nor InfiniBand (%s)", ErrNoDevice, strings.Join(others, ", "), s.l.Path())
	}
	slices.SortStableFunc(all, func(a, b SeamPort) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port))
	})
	return all, nil
}

func (d *Device) ports() []SeamPort {
	c, err := d.Open()
	if err != nil {
		return []SeamPort{{Device: d.d.Name, Port: 1, State: err.Error()}}
	}
	defer func() { _ = c.Close() }() // nothing was made on it
	gids, noGIDs := c.GIDs()
	all := make([]SeamPort, c.attr.Ports)
	for i := range all {
		p := &all[i]
		p.Device, p.Port = d.d.Name, i+1
		attr, err := c.Port(p.Port)
		if err == nil {
			err = noGIDs
		}
		if err != nil {
			p.State = err.Error()
			continue
		}
		p.Active, p.State = attr.State == PortActive, attr.State.String()
		p.Ethernet, p.MTU, p.Rate = attr.LinkLayer == LinkEthernet, attr.ActiveMTU, attr.Rate()
		for _, g := range gids {
			if g.Port == p.Port {
				p.GIDs = append(p.GIDs, SeamGID{Index: g.Index, Version: int(g.Type), Addr: g.GID, NetDev: g.NetDev})
			}
		}
	}
	return all
}
