package verbstest

import "fmt"

// Port is an HCA's only port, named by its host.
type Port struct{ Host, HCA int }

// Topology says which ports reach each other. Net n has the subnet 10.77.n.0/24, host h of it the address 10.77.n.(h+1), where
// one HCA a host is in the net; of more, HCA i has 10.77.n.(h+1+32*i).
type Topology struct {
	Hosts int      // 1 to 32
	HCAs  int      // of each host, 1 to 7
	Nets  [][]Port // a switch has many ports, a cable two; a port is in one net or in none
	// Switched says that a net of two ports is a switch too, of which one port goes down alone.
	Switched bool
	Dead     []int // nets that carry nothing, though their ports are up
}

// Switch is hosts on a switch a rail: HCA r of every host is on switch r.
func Switch(hosts, rails int) Topology {
	t := Topology{Hosts: hosts, HCAs: rails, Switched: true}
	for r := range max(rails, 0) {
		var net []Port
		for h := range max(hosts, 0) {
			net = append(net, Port{h, r})
		}
		t.Nets = append(t.Nets, net)
	}
	return t
}

// Ring is hosts without a switch: HCA 0 of each is cabled to HCA 1 of the next, so that only neighbours reach each other.
func Ring(hosts int) Topology {
	t := Topology{Hosts: hosts, HCAs: 2}
	for h := range max(hosts, 0) {
		t.Nets = append(t.Nets, []Port{{h, 0}, {(h + 1) % hosts, 1}})
	}
	return t
}

// Crossed is two hosts with two cables between them, each from one's HCA 0 to the other's HCA 1.
func Crossed() Topology {
	return Topology{Hosts: 2, HCAs: 2, Nets: [][]Port{{{0, 0}, {1, 1}}, {{0, 1}, {1, 0}}}}
}

// DeadRail is Switch with a rail that carries nothing, though its ports are up.
func DeadRail(hosts, rails, dead int) Topology {
	t := Switch(hosts, rails)
	t.Dead = []int{dead}
	return t
}

const (
	maxHosts = 32
	maxHCAs  = 7
)

func (t Topology) validate() error {
	if t.Hosts < 1 || t.Hosts > maxHosts {
		return fmt.Errorf("verbstest: Topology.Hosts is %d: 1 to %d", t.Hosts, maxHosts)
	}
	if t.HCAs < 1 || t.HCAs > maxHCAs {
		return fmt.Errorf("verbstest: Topology.HCAs is %d: 1 to %d", t.HCAs, maxHCAs)
	}
	if len(t.Nets) > 256 {
		return fmt.Errorf("verbstest: Topology.Nets has %d nets: at most 256", len(t.Nets))
	}
	seen := map[Port]int{}
	for n, ports := range t.Nets {
		for _, p := range ports {
			if p.Host < 0 || p.Host >= t.Hosts || p.HCA < 0 || p.HCA >= t.HCAs {
				return fmt.Errorf("verbstest: Topology.Nets[%d] has HCA %d of host %d: there are %d hosts of %d", n, p.HCA, p.Host, t.Hosts, t.HCAs)
			}
			if other, there := seen[p]; there {
				return fmt.Errorf("verbstest: HCA %d of host %d is in Topology.Nets[%d] and [%d]: it has one port", p.HCA, p.Host, other, n)
			}
			seen[p] = n
		}
	}
	for _, n := range t.Dead {
		if n < 0 || n >= len(t.Nets) {
			return fmt.Errorf("verbstest: Topology.Dead names net %d: there are %d, numbered from 0", n, len(t.Nets))
		}
	}
	return nil
}
