//go:build linux

package netns

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// layout is a way to connect hosts.
type layout struct {
	name  string
	hosts int
	nets  []Net
	bad   []weather // of the cable of each net; none: no relay
}

// layouts differ in one thing each. Under the race detector one is enough: the program is the same on all.
func layouts() []layout {
	four := layout{name: "four hosts on a switch", hosts: 4, nets: []Net{{V4: true}}}
	if raceDetector {
		return []layout{four}
	}
	return []layout{
		four,
		{name: "a cable with MTU 1500", hosts: 2, nets: []Net{{V4: true}}},
		{name: "a cable with MTU 9000", hosts: 2, nets: []Net{{V4: true, MTU: 9000}}},
		{name: "IPv6 only", hosts: 2, nets: []Net{{V6: true}}},
		{name: "IPv6 link-local only", hosts: 2, nets: []Net{{}}},
		{name: "two cables", hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true}}},
		unequal(),
	}
}

// unequal is two cables of which the base is four times slower.
func unequal() layout {
	const unit, queue = 1e7, 50 * time.Millisecond // bytes a second
	return layout{name: "two cables, one four times slower", hosts: 2, nets: []Net{{Number: 1, V4: true}, {Number: 2, V4: true}},
		bad: []weather{{Rate: unit, Queue: queue}, {Rate: 4 * unit, Queue: queue}}}
}

// site is hosts that are connected.
type site struct {
	hosts []*Host
	ports [][]*Port // by net, then by host
}

func (l layout) build(t testing.TB) *site {
	t.Helper()
	s := &site{hosts: Hosts(t, l.hosts)}
	for i, n := range l.nets {
		switch {
		case l.hosts > 2:
			s.ports = append(s.ports, Switch(s.hosts, n))
		case len(l.bad) > 0:
			a, b := relay(t, s.hosts[0], s.hosts[1], n, l.bad[i])
			s.ports = append(s.ports, []*Port{a, b})
		default:
			a, b := Cable(s.hosts[0], s.hosts[1], n)
			s.ports = append(s.ports, []*Port{a, b})
		}
	}
	return s
}

// reach is rank 0's address on the first net, as a rank names it: a zone is of its own host.
func (s *site) reach(rank int) netip.Addr {
	a := s.ports[0][0].Addr()
	if a.Zone() == "" {
		return a
	}
	return a.WithZone(s.ports[0][rank%len(s.hosts)].Device)
}

func TestTheContractHoldsBetweenHosts(t *testing.T) {
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := l.build(t)
			f := launch(t, s.hosts, 5)
			fabrictest.RunPairwise(t, func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
				opened, err := f[:world].open(hipfabric.Config{Name: o.Group, Timeout: o.Timeout, EagerBytes: fabrictest.PartBytes}, s.reach)
				require.NoError(t, err)
				subjects := make([]fabrictest.Subject, world)
				for i, o := range opened {
					subjects[i] = o
				}
				return subjects
			})
		})
	}
}
