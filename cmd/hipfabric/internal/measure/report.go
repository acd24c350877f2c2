package measure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Report writes results as they come: tables for people, JSON for programs, every sample for those who want to know.
type Report struct {
	Table io.Writer
	JSON  io.Writer // nil: none
	Raw   io.Writer // nil: none

	op   string
	rows table.Writer
}

// Facts writes a line of the JSON that is no result; the environment is the first.
func (r *Report) Facts(facts any) error { return r.json(facts) }

func (r *Report) json(v any) error {
	if r.JSON == nil {
		return nil
	}
	return json.NewEncoder(r.JSON).Encode(v)
}

// RawHeader begins the file of samples.
func (r *Report) RawHeader() error {
	if r.Raw == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.Raw, "op,bytes,dtype,redop,sample,ns")
	return err
}

// Add takes one result. An operation's table is written when the next one's begins.
func (r *Report) Add(res Result, samples []int64) error {
	name := res.Op
	if res.InPlace {
		name += " in place"
	}
	if name != r.op {
		if err := r.Flush(); err != nil {
			return err
		}
		r.op, r.rows = name, NewTable()
		r.rows.SetColumnConfigs(rightAligned(14))
		kind := res.Kind
		if res.About != "" {
			kind += " (" + res.About + ")"
		}
		r.rows.SetTitle("%s, %d ranks, %s, %d iterations, rank 0's samples", name, res.World, kind, res.Iters)
		header := table.Row{"size (B)", "count", "type", "redop", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong",
			"p50", "p90", "p99", "p99.9", "max"}
		if res.QueuedP50Us != nil {
			header = append(header, "queued_p50_us")
		}
		r.rows.AppendHeader(header)
	}
	r.rows.AppendRow(row(res))
	if err := r.json(res); err != nil {
		return err
	}
	return r.raw(res, samples)
}

func row(res Result) table.Row {
	wrong := "N/A"
	if res.Wrong != nil {
		wrong = strconv.FormatInt(*res.Wrong, 10)
	}
	us := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	columns := table.Row{res.Bytes, res.Bytes / elementSize(res.DType), res.DType, res.Redop, us(res.AvgUs), fmt.Sprintf("%.3f", res.AlgBW),
		fmt.Sprintf("%.3f", res.BusBW), wrong, us(res.P50Us), us(res.P90Us), us(res.P99Us), us(res.P999Us), us(res.MaxUs)}
	if res.QueuedP50Us != nil {
		columns = append(columns, us(*res.QueuedP50Us))
	}
	return columns
}

func (r *Report) raw(res Result, samples []int64) error {
	if r.Raw == nil {
		return nil
	}
	w := bufio.NewWriter(r.Raw)
	for i, ns := range samples {
		_, _ = fmt.Fprintf(w, "%s,%d,%s,%s,%d,%d\n", res.Op, res.Bytes, res.DType, res.Redop, i, ns)
	}
	return w.Flush()
}

// Flush writes the table that is not out yet.
func (r *Report) Flush() error {
	if r.rows == nil {
		return nil
	}
	_, err := fmt.Fprintln(r.Table, r.rows.Render())
	r.op, r.rows = "", nil
	return err
}

// Tallies writes what a check of many calls came to.
func (r *Report) Tallies(tallies []Tally) error {
	t := NewTable()
	t.AppendHeader(table.Row{"operation", "calls", "#wrong"})
	calls := 0
	for _, one := range tallies {
		t.AppendRow(table.Row{one.What, one.Calls, one.Wrong})
		calls += one.Calls
	}
	t.AppendFooter(table.Row{"all", calls, ""})
	_, err := fmt.Fprintln(r.Table, t.Render())
	return err
}

// rightAligned has numbers that were written as text stand under each other.
func rightAligned(columns int) []table.ColumnConfig {
	list := make([]table.ColumnConfig, columns)
	for i := range list {
		list[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	return list
}

// NewTable gives a table in the one look of all tables here: numbers to the right, nothing that a log or a grep would stumble over.
func NewTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Format.Header, style.Format.Footer = text.FormatDefault, text.FormatDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Title.Align = text.AlignLeft
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	return t
}
