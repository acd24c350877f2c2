package hipgo

import (
	"fmt"
	"strings"
)

// Selector says which of several devices a rank takes.
type Selector struct {
	PCI       string // a device's place, as PCI prints it; the domain may be left out. Empty: by what is visible
	LocalRank int    // among several visible devices, that one
}

// Choose gives the device of an explicit PCI id; else the only visible one; else that of the local rank. Errors: ErrNoGPU, or
// what was asked for and which there are.
func (r *Runtime) Choose(s Selector) (*Device, error) {
	all, err := r.Devices()
	if err != nil {
		return nil, err
	}
	switch {
	case s.PCI != "":
		want := fullPCI(s.PCI)
		for _, d := range all {
			if fullPCI(d.pci) == want {
				return d, nil
			}
		}
		return nil, invalid("no device at %s: there are %s; is it hidden by ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES? %s", s.PCI, list(all), r)
	case len(all) == 1:
		return all[0], nil
	case s.LocalRank < 0 || s.LocalRank >= len(all):
		return nil, invalid("local rank %d has no device of its own: there are %s; name one by its PCI id, %s", s.LocalRank, list(all), r)
	}
	return all[s.LocalRank], nil
}

// fullPCI makes C5:00.0 the same as 0000:c5:00.0.
func fullPCI(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if strings.Count(id, ":") == 1 {
		id = "0000:" + id
	}
	if !strings.Contains(id, ".") {
		id += ".0"
	}
	return id
}

func list(all []*Device) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = fmt.Sprintf("%d: %s %s at %s", d.ordinal, d.arch, d.name, d.pci)
	}
	return strings.Join(names, ", ")
}
