package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// railsSchema names the JSON line that says what went over each rail.
const railsSchema = "hipfabric.rails/1"

// railLine is one rail of rank 0's as the JSON tells it; rates are over the whole run, checks and pauses included.
type railLine struct {
	Peer                   int     `json:"peer"`
	Rail                   string  `json:"rail"`
	Lanes                  int     `json:"lanes"`
	Lost                   uint64  `json:"lost"`
	SentBytes              uint64  `json:"sent_bytes"`
	ReceivedBytes          uint64  `json:"received_bytes"`
	SentBytesPerSecond     float64 `json:"sent_bytes_per_second"`
	ReceivedBytesPerSecond float64 `json:"received_bytes_per_second"`
	Retransmits            uint64  `json:"retransmits"`
	RoundTripUs            float64 `json:"round_trip_us"`
}

// railReport writes what went over each of rank 0's rails.
func railReport(report *measure.Report, peers []fabric.PeerStats, over time.Duration) error {
	t := measure.NewTable()
	t.AppendHeader(table.Row{"peer", "rail", "lanes", "lost", "sent", "received", "sent/s", "received/s", "retransmits"})
	var lines []railLine
	for _, p := range peers {
		for _, r := range p.Rails {
			l := railLine{Peer: p.Peer, Rail: r.Name, Lanes: r.Lanes, Lost: r.Lost, SentBytes: r.SentBytes, ReceivedBytes: r.ReceivedBytes,
				SentBytesPerSecond: float64(r.SentBytes) / over.Seconds(), ReceivedBytesPerSecond: float64(r.ReceivedBytes) / over.Seconds(),
				Retransmits: r.Retransmits, RoundTripUs: float64(r.RoundTrip) / float64(time.Microsecond)}
			lines = append(lines, l)
			t.AppendRow(table.Row{l.Peer, l.Rail, l.Lanes, l.Lost, sized(float64(l.SentBytes)), sized(float64(l.ReceivedBytes)),
				sized(l.SentBytesPerSecond), sized(l.ReceivedBytesPerSecond), l.Retransmits})
		}
	}
	if len(lines) == 0 { // a world of one
		return nil
	}
	if _, err := fmt.Fprintln(report.Table, t.Render()); err != nil {
		return err
	}
	return report.Facts(map[string]any{"schema": railsSchema, "rails": lines})
}
