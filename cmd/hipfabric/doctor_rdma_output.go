package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/rdma"
)

// writeRdma is the report for people: what the hosts have, what was tried, what is wrong.
func writeRdma(w io.Writer, r *rdma.Report) error {
	hosts := []rdmaSide{{rdma.ThisHost, &r.Host}}
	if r.Meeting != nil && r.Meeting.Far != nil {
		hosts = append(hosts, rdmaSide{rdma.ThePeer, r.Meeting.Far})
	}
	parts := []string{hostTable(hosts), portTable(hosts), gidTable(hosts), reachTable(r.Reach)}
	if r.Meeting != nil {
		parts = append(parts, railTable(r.Meeting.Rails))
	}
	parts = append(parts, counterTable(hosts), findingLines(r))
	var b strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.TrimRight(part, "\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rdmaSide is a host as the tables name it.
type rdmaSide struct {
	name string
	*rdma.Host
}

// shown keeps what the other end says of itself from being more than text.
func shown(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, s)
}

func told(s string) string {
	if s = shown(s); s == "" {
		return "not told"
	}
	return s
}

func hostTable(hosts []rdmaSide) string {
	t := measure.NewTable()
	head := table.Row{""}
	for _, h := range hosts {
		head = append(head, h.name)
	}
	t.AppendHeader(head)
	for _, row := range []struct {
		name string
		of   func(*rdma.Host) string
	}{
		{"host", func(h *rdma.Host) string { return h.Name }},
		{"system", func(h *rdma.Host) string { return strings.Trim(h.OS+", "+h.Kernel, ", ") }},
		{"runs in", placeWords},
		{"libibverbs", func(h *rdma.Host) string {
			if h.Library == "" {
				return "none"
			}
			return h.Library
		}},
		{"devices", func(h *rdma.Host) string { return orNone(deviceNames(h)) }},
		{"device files", nodeWords},
		{"modules", moduleWords},
		{"memlock", memlockWords},
		{"IOMMU", func(h *rdma.Host) string { return h.IOMMU }},
	} {
		line := table.Row{row.name}
		for _, h := range hosts {
			line = append(line, told(row.of(h.Host)))
		}
		t.AppendRow(line)
	}
	return t.Render()
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func deviceNames(h *rdma.Host) (names []string) {
	for _, d := range h.Devices {
		driver := d.Driver
		if d.Software {
			driver = "software"
		}
		names = append(names, strings.TrimSuffix(d.Name+" ("+driver+")", " ()"))
	}
	return names
}

func placeWords(h *rdma.Host) string {
	var words []string
	if h.Place.WSL {
		words = append(words, "WSL")
	}
	if h.Place.Container != "" {
		words = append(words, "a container ("+h.Place.Container+")")
	}
	if h.Place.Rootless {
		words = append(words, "a user namespace")
	}
	if h.Place.Virtual {
		words = append(words, "a virtual machine")
	}
	if len(words) == 0 {
		return "no container or virtual machine that is known"
	}
	return strings.Join(words, ", ")
}

func nodeWords(h *rdma.Host) string {
	var words []string
	for _, n := range h.Nodes {
		word := strings.TrimPrefix(n.Path, "/dev/infiniband/")
		switch {
		case !n.There:
			word += " missing"
		case n.Denied:
			word += " not permitted"
		}
		words = append(words, word)
	}
	return orNone(words)
}

func moduleWords(h *rdma.Host) string {
	by := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(h.Modules)) {
		by[h.Modules[name]] = append(by[h.Modules[name]], name)
	}
	var words []string
	for _, state := range []string{rdma.Loaded, rdma.Available, rdma.Missing, rdma.NotTold} {
		if len(by[state]) > 0 {
			words = append(words, state+": "+strings.Join(by[state], ", "))
		}
	}
	if h.Fixed {
		words = append(words, "this kernel loads none")
	}
	return strings.Join(words, "; ")
}

func memlockWords(h *rdma.Host) string {
	m := h.Memlock
	amount := func(v int64) string {
		if v == rdma.NoLimit {
			return "no limit"
		}
		return sized(float64(v))
	}
	switch {
	case !m.Told:
		return ""
	case m.Lifted && m.Soft != rdma.NoLimit:
		return amount(m.Soft) + ", lifted by CAP_IPC_LOCK"
	case m.Soft == m.Hard:
		return amount(m.Soft)
	}
	return amount(m.Soft) + ", can be raised to " + amount(m.Hard)
}

func portTable(hosts []rdmaSide) string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"", "device", "port", "state", "link", "Gb/s", "RDMA MTU", "interface", "its MTU", "rx-usecs", "firmware", "PCIe", "writes to itself"})
	rows := 0
	for _, h := range hosts {
		for _, d := range h.Devices {
			for _, p := range d.Ports {
				rows++
				mtu, usecs := "", ""
				for _, i := range h.Interfaces {
					if i.Name == p.NetDev && i.Name != "" {
						mtu = fmt.Sprint(i.MTU)
						if i.RxUsecs >= 0 {
							usecs = fmt.Sprint(i.RxUsecs)
						}
					}
				}
				t.AppendRow(table.Row{h.name, shown(d.Name), p.Number, told(p.State), told(p.Physical), rateWord(p.Gbps), numberWord(p.MTU), told(p.NetDev), told(mtu), told(usecs), told(d.Firmware), pciWords(d.PCI), selfWords(p.SelfTest)})
			}
		}
	}
	if rows == 0 {
		return ""
	}
	return t.Render()
}

func numberWord(n int) string {
	if n <= 0 {
		return "not told"
	}
	return fmt.Sprint(n)
}

func rateWord(gbps float64) string {
	if gbps <= 0 {
		return "not told"
	}
	return fmt.Sprintf("%.4g", gbps)
}

func pciWords(p *rdma.PCI) string {
	switch {
	case p == nil:
		return "none"
	case p.Gbps() == 0:
		return shown(p.Address)
	}
	return fmt.Sprintf("%s x%d at %g GT/s: %.0f Gb/s", shown(p.Address), p.Lanes, p.GTs, p.Gbps())
}

func selfWords(t *rdma.SelfTest) string {
	switch {
	case t == nil:
		return "not tried"
	case t.Failed != "":
		return "failed"
	case t.Wrong > 0:
		return "wrong bytes"
	}
	return fmt.Sprintf("ok, %.1f us", t.P50Us)
}

// shownGIDs is how many of a port are listed; --json has all.
const shownGIDs = 8

func gidTable(hosts []rdmaSide) string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"", "device", "port", "GID", "type", "address", "interface", "a group takes it"})
	rows := 0
	for _, h := range hosts {
		for _, d := range h.Devices {
			for _, p := range d.Ports {
				for n, g := range p.GIDs {
					takes := ""
					if g.Index == p.Chosen {
						takes = "yes: " + p.Why
					} else if n >= shownGIDs {
						continue
					}
					address := g.Address
					if g.Bits > 0 {
						address += fmt.Sprintf("/%d", g.Bits)
					}
					rows++
					t.AppendRow(table.Row{h.name, shown(d.Name), p.Number, g.Index, shown(g.Type), shown(address), told(g.NetDev), shown(takes)})
				}
				if n := len(p.GIDs); n > shownGIDs {
					t.AppendRow(table.Row{h.name, shown(d.Name), p.Number, "...", fmt.Sprintf("%d in all", n)})
				}
			}
		}
	}
	if rows == 0 {
		return ""
	}
	return t.Render()
}

func reachTable(ways []rdma.Reach) string {
	if len(ways) == 0 {
		return ""
	}
	t := measure.NewTable()
	t.AppendHeader(table.Row{"way to", "from", "interface", "RDMA port", "its subnet", "on the link", "small packets", "largest packet", "path MTU"})
	for _, w := range ways {
		port, small, large := "none", "not answered", "not known"
		if w.Device != "" {
			port = fmt.Sprintf("%s %d", w.Device, w.Port)
		}
		if w.Answers {
			small = "answered"
		}
		if w.Fits != "" {
			large = fmt.Sprintf("%d bytes: %s", w.Size, w.Fits)
		}
		t.AppendRow(table.Row{w.Peer, told(w.From), told(w.Interface), port, told(w.Subnet), told(w.Neighbour), small, large, numberWord(w.PathMTU)})
	}
	return t.Render()
}

func railTable(rails []rdma.Rail) string {
	if len(rails) == 0 {
		return ""
	}
	t := measure.NewTable()
	t.AppendHeader(table.Row{"here", "GID", "there", "GID", "MTU", "bytes", "samples", "there and back: min (us)", "p50", "p99", "max", "wrong", ""})
	us := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	for _, r := range rails {
		ends := table.Row{shown(r.Near.Device), shown(r.Near.GID), shown(r.Far.Device), shown(r.Far.GID), r.MTU}
		for _, trip := range r.Trips {
			t.AppendRow(append(slices.Clone(ends), trip.Bytes, trip.Samples, us(trip.MinUs), us(trip.P50Us), us(trip.P99Us), us(trip.MaxUs), trip.Wrong))
		}
		if r.Failed != "" {
			t.AppendRow(append(slices.Clone(ends), "", "", "", "", "", "", "", "failed: "+r.Step))
		}
	}
	var columns []table.ColumnConfig
	for n := 5; n <= 12; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t.Render()
}

// counterTable has what changed while a port wrote to itself, and while queue pairs were tried with a peer.
func counterTable(hosts []rdmaSide) string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"", "device", "port", "during", "counter", "before", "after"})
	rows := 0
	for _, h := range hosts {
		for _, d := range h.Devices {
			for _, p := range d.Ports {
				row := func(during, name string, before, change int64) {
					rows++
					t.AppendRow(table.Row{h.name, shown(d.Name), p.Number, during, shown(name), before, before + change})
				}
				if p.SelfTest != nil {
					for _, name := range slices.Sorted(maps.Keys(p.SelfTest.Changes)) {
						n := p.SelfTest.Changes[name]
						row("writes to itself", name, p.Counters[name]-n, n)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(p.Changes)) {
					row("queue pairs", name, p.Counters[name], p.Changes[name])
				}
			}
		}
	}
	if rows == 0 {
		return ""
	}
	return t.Render()
}

func findingLines(r *rdma.Report) string {
	if len(r.Findings) == 0 {
		return "nothing to mend\n"
	}
	var b strings.Builder
	for _, f := range r.Findings {
		where := ""
		if f.Host != "" {
			where = " (" + f.Host + ")"
		}
		fmt.Fprintf(&b, "%s %s%s: %s\n  bound: %s\n  why:   %s\n", f.Severity, shown(f.Code), where, shown(f.Seen), shown(f.Bound), shown(f.Why))
		for _, m := range f.Mend {
			fmt.Fprintf(&b, "  mend:  %s\n", shown(m))
		}
	}
	return b.String()
}
