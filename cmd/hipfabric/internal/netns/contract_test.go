//go:build linux

package netns

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// layout is a way to connect hosts.
type layout struct {
	name  string
	hosts int
	nets  []Net
}

// layouts differ in one thing each.
func layouts() []layout {
	return []layout{
		{"a cable with MTU 1500", 2, []Net{{V4: true}}},
		{"a cable with MTU 9000", 2, []Net{{V4: true, MTU: 9000}}},
		{"four hosts on a switch", 4, []Net{{V4: true}}},
		{"IPv6 only", 2, []Net{{V6: true}}},
		{"IPv6 link-local only", 2, []Net{{}}},
		{"two cables", 2, []Net{{Number: 1, V4: true}, {Number: 2, V4: true}}},
	}
}

// few have all of that in fewer layouts, for what takes long.
func few() []layout {
	return []layout{
		{"a cable with MTU 1500", 2, []Net{{V4: true}}},
		{"two cables with MTU 1500 and 9000, IPv6 only", 2, []Net{{Number: 1, V6: true}, {Number: 2, V6: true, MTU: 9000}}},
		{"four hosts on a switch with MTU 9000", 4, []Net{{V4: true, MTU: 9000}}},
	}
}

// site is hosts that are connected.
type site struct {
	hosts []*Host
	ports [][]*Port // by net, then by host
}

func (l layout) build(t testing.TB) *site {
	t.Helper()
	s := &site{hosts: Hosts(t, l.hosts)}
	for _, n := range l.nets {
		if l.hosts == 2 {
			a, b := Cable(s.hosts[0], s.hosts[1], n)
			s.ports = append(s.ports, []*Port{a, b})
			continue
		}
		s.ports = append(s.ports, Switch(s.hosts, n))
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
			if raceDetector && l.hosts < 4 {
				t.Skip("under the race detector one layout is enough: the program is the same on all")
			}
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
