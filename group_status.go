package hipfabric

import (
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

// tick takes the sample that later rates are measured from.
func (g *Group) tick() { g.rates.add(g.sample(g.session.Status())) }

func (g *Group) sample(ranks []bootstrap.RankStatus) sample {
	s := sample{at: time.Now(), stats: g.host.Stats(), calls: make(map[int]uint64, len(ranks))}
	for _, r := range ranks {
		s.calls[r.Rank] = r.Progress.Calls
	}
	return s
}

// document is what the status socket serves.
func (g *Group) document() Status {
	ranks := g.session.Status()
	s := Status{Schema: StatusSchema, Group: g.cfg.Name, Rank: g.cfg.Rank, World: g.cfg.World,
		UptimeMs: time.Since(g.opened).Milliseconds(), Paths: g.Paths()}
	if cause := g.session.Cause(); cause != nil {
		s.Cause = cause.Error()
	}
	for _, r := range ranks {
		s.Ranks = append(s.Ranks, rankStatus(r))
	}
	s.fill(g.sample(ranks), g.rates.base())
	if c := g.onDevice(); c != nil {
		s.Device = c.status()
	}
	return s
}

func (c *channel) status() *DeviceStatus {
	stats, p := c.calls.Stats(), c.calls.Progress()
	s := &DeviceStatus{Gate: c.gate.String(), Device: c.about, Calls: stats.Calls, Failed: stats.Failed, Bytes: stats.Bytes, Peer: -1,
		WaitingFor: ranksOf(p.Waiting)}
	if p.Op != 0 {
		s.Running, s.Op, s.Seq, s.CallBytes, s.CallAgeMs = p.Running, p.Op.String(), p.Seq, p.Bytes, p.Age.Milliseconds()
		if p.Class == fabric.Pair {
			s.Peer = p.Peer
		}
	}
	return s
}

func rankStatus(r bootstrap.RankStatus) RankStatus {
	s := RankStatus{Rank: r.Rank, Host: r.Host, State: "ok", HeardMs: r.Age.Milliseconds(), Peer: -1, Calls: r.Progress.Calls,
		WaitingFor: ranksOf(r.Progress.Waiting)}
	switch {
	case r.Failed:
		s.State = "failed"
	case r.Left:
		s.State = "left"
	case r.Age < 0:
		s.State, s.HeardMs = "unknown", -1
	}
	if p := r.Progress; p.Op != 0 {
		// Time has gone on since the sample.
		s.Group = p.Group
		s.Running, s.Op, s.Seq, s.CallBytes, s.CallAgeMs = p.Running, p.Op.String(), p.Seq, p.Bytes, (p.Age + max(r.Age, 0)).Milliseconds()
		if p.Class == fabric.Pair {
			s.Peer = p.Peer
		}
	}
	return s
}

// flights are the reports that the bootstrap gathered, as rows of the table.
func flights(reports []bootstrap.RankReport) []flight {
	rows := make([]flight, 0, len(reports))
	for _, r := range reports {
		rows = append(rows, flight{rank: r.Rank, missing: r.Missing, progress: r.Progress, records: r.Records})
	}
	return rows
}
