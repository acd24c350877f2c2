package tcp

import (
	"context"
	"fmt"
	"log/slog"
)

// note is a line for the log, which the driver of a call must not wait for.
type note struct {
	level slog.Level
	text  string
	f     *peer
	rail  string
	why   error
	looks int // since it was noted
}

// lost notes a dead lane for the log.
func (t *Transport) lost(f *peer, l *lane) { t.note(slog.LevelWarn, "rail lost", f, l) }

func (t *Transport) note(level slog.Level, text string, f *peer, l *lane) {
	m := t.mend
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, note{level: level, text: text, f: f, rail: l.rail.String(), why: l.why})
}

// ripen lets what was noted be logged after another look, unless the pair has ended by then: a peer that leaves closes
// every lane. mu is held, by the driver.
func (m *mender) ripen() {
	left := m.notes[:0]
	for _, n := range m.notes {
		if n.looks++; n.f.up > 0 {
			left = append(left, n)
		}
	}
	m.notes = left
}

func (m *mender) log(log *slog.Logger) {
	m.mu.Lock()
	var notes, young []note
	for _, n := range m.notes {
		if n.looks > 1 {
			notes = append(notes, n)
		} else {
			young = append(young, n)
		}
	}
	m.notes = young
	m.mu.Unlock()
	said := map[string]bool{}
	for _, n := range notes {
		key := fmt.Sprint(n.text, n.f.Peer, n.rail)
		if said[key] {
			continue // the rail's other lanes
		}
		said[key] = true
		attrs := []any{"peer", n.f.Peer, "rail", n.rail}
		if n.why != nil {
			attrs = append(attrs, "err", n.why)
		}
		log.Log(context.Background(), n.level, n.text, attrs...)
	}
}
