//go:build linux

package netns

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// much is more than a rail carries by the way: what a redialled or a second one must carry to count.
const much = 8 << 20

func twoCables() layout {
	return layout{hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true, MTU: 9000}}}
}

// carries waits until a port has sent much more.
func (r *running) carries(p *Port) {
	r.t.Helper()
	began := p.Sent()
	late := time.Now().Add(patience)
	for p.Sent() < began+much {
		require.True(r.t, time.Now().Before(late), "%s of %s has sent %d bytes in %v\n%s", p.Device, p.Host.Name, p.Sent()-began, patience, r.logs())
		r.advance(2)
	}
}

// quiet requires that a port sends nothing to speak of while the calls go on.
func (r *running) quiet(p *Port) {
	r.t.Helper()
	began := p.Sent()
	r.advance(10)
	assert.Less(r.t, p.Sent()-began, uint64(much), "%s of %s", p.Device, p.Host.Name)
}

// logged waits until a rank's log has a line with all of these words.
func (r *running) logged(rank int, words ...string) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		text := r.ranks[rank].worker.stderr.String()
		for line := range strings.Lines(text) {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return
			}
		}
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(r.t, "the log lacks a line", "rank %d, %q:\n%s", rank, words, text)
		}
	}
}

// rails gives what a rank counts of its ways to the other of two.
func (r *running) rails(rank int) []fabric.RailStats {
	r.t.Helper()
	s := r.ranks[rank]
	var stats fabric.Stats
	require.NoError(r.t, s.worker.ask("Stats", Order{Group: s.group}, &stats))
	for _, p := range stats.Transport.Peers {
		if p.Peer == 1-rank {
			return p.Rails
		}
	}
	return nil
}

// until goes on until what rank 0 counts of its ways to the other of two is so.
func (r *running) until(what string, so func(rails []fabric.RailStats) bool) {
	r.t.Helper()
	for late := time.Now().Add(patience); !so(r.rails(0)); {
		require.True(r.t, time.Now().Before(late), "not in %v: %s: %+v\n%s", patience, what, r.rails(0), r.logs())
		r.advance(1)
	}
}

func TestTwoCablesBothCarry(t *testing.T) {
	s := twoCables().build(t)
	r := run(t, s.group(t, hipfabric.Config{}), 1, most)
	for _, net := range s.ports {
		for _, p := range net {
			r.carries(p)
		}
	}
	for rank := range 2 {
		rails := r.rails(rank)
		require.Len(t, rails, 2)
		for i, rail := range rails {
			assert.Contains(t, rail.Name, s.ports[i][rank].Device)
			assert.Greater(t, rail.SentBytes, uint64(much), "%s", rail.Name)
			assert.Positive(t, rail.Lanes)
		}
	}
	r.stop()
}

func TestACutRailIsNamedAndComesBack(t *testing.T) {
	for _, cut := range []struct {
		name      string
		cut, mend func(a, b *Port)
	}{
		{"its link goes down at rank 0", func(a, b *Port) { b.Pull() }, func(a, b *Port) { b.Plug() }},
		{"its link goes down at rank 1", func(a, b *Port) { a.Pull() }, func(a, b *Port) { a.Plug() }},
		{"rank 0 is not heard on it", func(a, b *Port) { a.Mute(b) }, func(a, b *Port) { a.Unmute(b) }},
		{"rank 1 is not heard on it", func(a, b *Port) { b.Mute(a) }, func(a, b *Port) { b.Unmute(a) }},
	} {
		t.Run(cut.name, func(t *testing.T) {
			s := twoCables().build(t)
			r := run(t, s.group(t, hipfabric.Config{}), 2, most)
			a, b := s.ports[1][0], s.ports[1][1]
			r.carries(a)
			cut.cut(a, b)
			for rank, p := range s.ports[1] {
				r.logged(rank, "level=WARN", "rail lost", p.Device)
			}
			r.quiet(a)
			r.quiet(b)
			cut.mend(a, b)
			for rank, p := range s.ports[1] {
				r.logged(rank, "rail is back", p.Device)
			}
			r.carries(a)
			r.carries(b)
			for rank := range 2 {
				assert.Positive(t, r.rails(rank)[1].Lost, "rank %d", rank)
			}
			r.stop()
		})
	}
}

func TestACableThatIsDeadAtOpenIsNamed(t *testing.T) {
	for name, kill := range map[string]func(a, b *Port){
		"without carrier":             func(a, b *Port) { a.Pull(); b.Pull() },
		"with carrier, one way":       func(a, b *Port) { a.Mute(b) },
		"with carrier, the other way": func(a, b *Port) { b.Mute(a) },
	} {
		t.Run(name, func(t *testing.T) {
			s := layout{hosts: 2, nets: []Net{{Number: 1, V4: true}}}.build(t)
			cable := Switch(s.hosts, Net{Number: 2, V4: true}) // whose ends lose their carriers and stay up
			kill(cable[0], cable[1])
			r := run(t, s.group(t, hipfabric.Config{}), 3, most)
			for rank, p := range cable {
				r.logged(rank, "level=WARN", "rail is dead", p.Device)
			}
			r.stop()
		})
	}
}

func TestCrossedCablesAreNamed(t *testing.T) {
	s := layout{hosts: 2, nets: []Net{{V4: true}}}.build(t)
	a1, b1 := Cable(s.hosts[0], s.hosts[1], Net{})
	a2, b2 := Cable(s.hosts[0], s.hosts[1], Net{})
	for _, at := range []struct {
		port    *Port
		address string
	}{{a1, "10.77.1.1/24"}, {a2, "10.77.2.1/24"}, {b2, "10.77.1.2/24"}, {b1, "10.77.2.2/24"}} {
		at.port.Host.ip("addr", "add", at.address, "dev", at.port.Device)
	}
	r := run(t, s.group(t, hipfabric.Config{}), 4, most)
	for rank, ports := range [][]*Port{{a1, a2}, {b1, b2}} {
		for _, p := range ports {
			r.logged(rank, "level=WARN", "rail is dead", p.Device)
		}
	}
	r.carries(s.ports[0][0])
	r.stop()
}

func TestAFlappingRailIsDialledAnewOnceACut(t *testing.T) {
	s := twoCables().build(t)
	r := run(t, s.group(t, hipfabric.Config{Lanes: 4}), 1, most)
	flapping := s.ports[0][1]
	const cuts = 5
	for range cuts {
		flapping.Pull()
		r.advance(1)
		<-time.After(400 * time.Millisecond)
		flapping.Plug()
		r.until("the rail is back", func(rails []fabric.RailStats) bool { return rails[0].Lanes > 0 })
	}
	for rank := range 2 {
		rail := r.rails(rank)[0]
		t.Logf("RESULT: rank %d: %d connections lost in %d cuts", rank, rail.Lost, cuts)
		assert.LessOrEqual(t, rail.Lost, uint64(4*cuts), "2 connections, and once more each: %+v", rail)
	}
	r.stop()
}
