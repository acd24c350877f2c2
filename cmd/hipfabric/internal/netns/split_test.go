//go:build linux

package netns

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// split makes a group of all ranks of another.
func split(t testing.TB, ranks []*subject, name string) []*subject {
	t.Helper()
	f, members := fleet{}, make([]*subject, len(ranks))
	for _, s := range ranks {
		f = append(f, s.worker)
	}
	require.NoError(t, f.each(func(rank int) error {
		var r Opened
		if err := f[rank].ask("Split", Order{Group: ranks[rank].group, Text: name}, &r); err != nil {
			return err
		}
		members[rank] = &subject{worker: f[rank], group: r.Group, rank: rank, world: len(ranks)}
		return r.Fault.err()
	}))
	return members
}

func TestASplitLivesThroughACutRail(t *testing.T) {
	s := twoCables().build(t)
	whole := s.group(t, hipfabric.Config{})
	flows := []*running{run(t, split(t, whole, "part"), 1, most), run(t, whole, 2, most)}
	each := func(what string, rail int, so func(fabric.RailStats) bool) {
		for _, r := range flows {
			r.until(what, func(rails []fabric.RailStats) bool { return so(rails[rail]) })
		}
	}
	for i, net := range s.ports {
		each("a rail carries", i, func(s fabric.RailStats) bool { return s.SentBytes > much })
		net[1].Pull()
		each("a rail is lost", i, func(s fabric.RailStats) bool { return s.Lost > 0 && s.Lanes == 0 })
		for _, r := range flows {
			r.advance(5)
		}
		net[1].Plug()
		each("a rail is back", i, func(s fabric.RailStats) bool { return s.Lanes > 0 })
	}
	for _, r := range flows {
		r.stop()
	}
}
