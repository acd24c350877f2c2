package doctor

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
)

// Write prints the report for people: what the ends are, what was measured, what is wrong.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.facts() + "\n")
	if len(r.Trips) > 0 {
		b.WriteString("\n" + r.trips() + "\n")
	}
	if len(r.Rates) > 0 {
		b.WriteString("\n" + r.rates() + "\n")
	}
	b.WriteString("\n" + r.findings())
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// printable keeps what the other end says of itself from being more than text.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, s)
}

func (r *Report) facts() string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"", "this host", "peer " + r.Peer})
	rows := []struct {
		name string
		of   func(*Host) string
	}{
		{"host", func(h *Host) string { return h.Name }},
		{"address", func(h *Host) string { return h.Address }},
		{"interface", func(h *Host) string { return h.Interface }},
		{"driver", func(h *Host) string { return h.carrier().Driver }},
		{"MTU", func(h *Host) string { return number(h.carrier().MTU, "") }},
		{"speed", func(h *Host) string { return number(h.carrier().Mbits, " Mb/s") }},
		{"duplex", func(h *Host) string { return h.carrier().Duplex }},
		{"moderation", moderated},
		{"errors, drops", func(h *Host) string { return counted(h.Changes) }},
		{"rp_filter", func(h *Host) string { return []string{"", "off", "strict", "loose"}[min(h.carrier().RPFilter+1, 3)] }},
		{"firewall", func(h *Host) string { return strings.Join(h.Firewalls, ", ") }},
		{"kernel", func(h *Host) string { return h.Kernel }},
		{"CPU", func(h *Host) string { return strings.Trim(h.CPU+", "+number(h.Cores, " cores"), ", ") }},
		{"governor", func(h *Host) string { return h.Governor }},
	}
	for _, row := range rows {
		near, far := printable(row.of(&r.Near)), ""
		if r.Far != nil {
			far = printable(row.of(r.Far)) // before the table measures and trims it
		}
		if near+far != "" {
			t.AppendRow(table.Row{row.name, orNotTold(near), orNotTold(far)})
		}
	}
	return t.Render()
}

func orNotTold(fact string) string {
	if fact == "" {
		return "not told"
	}
	return fact
}

func number(n int, unit string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n) + unit
}

func moderated(h *Host) string {
	i := h.carrier()
	switch {
	case i.Driver == thunderboltNet:
		return fmt.Sprintf("%d us, fixed", thunderboltUsecs)
	case i.RxUsecs < 0:
		return ""
	case i.AdaptiveRx:
		return fmt.Sprintf("%d us, adaptive", i.RxUsecs)
	}
	return fmt.Sprintf("%d us", i.RxUsecs)
}

func counted(changes map[string]int64) string {
	if changes == nil {
		return ""
	}
	return fmt.Sprintf("%d, %d", changes["rx_errors"]+changes["tx_errors"], changes["rx_dropped"]+changes["tx_dropped"])
}

func (r *Report) trips() string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"round trip, TCP", "bytes", "samples", "min (us)", "p50", "p99", "max"})
	us := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	for _, trip := range r.Trips {
		t.AppendRow(table.Row{"both ends " + trip.Wait, trip.Bytes, trip.Samples, us(trip.MinUs), us(trip.P50Us), us(trip.P99Us), us(trip.MaxUs)})
	}
	t.SetColumnConfigs(right(2, 7))
	return t.Render()
}

func (r *Report) rates() string {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"lanes", "direction", "GB/s", "Gb/s", "sent again", "of segments", "MSS", "path MTU", ""})
	for _, rate := range r.Rates {
		remark := ""
		if rate.Stalled {
			remark = "stalled"
		}
		again, segments := "not counted", "not counted"
		if rate.Segments >= 0 {
			again, segments = fmt.Sprint(rate.Retransmits), fmt.Sprint(rate.Segments)
		}
		t.AppendRow(table.Row{rate.Lanes, rate.Direction, fmt.Sprintf("%.3f", rate.GBps), fmt.Sprintf("%.2f", rate.Gbps), again, segments,
			orNotTold(number(rate.MSS, "")), orNotTold(number(rate.PathMTU, "")), remark})
	}
	t.SetColumnConfigs(right(3, 8))
	return t.Render()
}

// right has the numbers of columns from to to, which are text, stand under each other.
func right(from, to int) (list []table.ColumnConfig) {
	for n := from; n <= to; n++ {
		list = append(list, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return list
}

func (r *Report) findings() string {
	if len(r.Findings) == 0 {
		return "nothing to mend\n"
	}
	var b strings.Builder
	for _, f := range r.Findings {
		where := ""
		if f.Host != "" {
			where = " (" + f.Host + ")"
		}
		fmt.Fprintf(&b, "%s %s%s: %s\n  bound: %s\n  why:   %s\n", f.Severity, f.Code, where, f.Seen, f.Bound, f.Why)
		for _, m := range f.Mend {
			fmt.Fprintf(&b, "  mend:  %s\n", m)
		}
	}
	return b.String()
}

// Errors counts the findings of severity error.
func (r *Report) Errors() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == Error {
			n++
		}
	}
	return n
}
