package doctor

import (
	"fmt"
	"net"
	"slices"
)

// Severity says what a finding means for a group on this way.
type Severity string

const (
	Error   Severity = "error"   // it does not work, or bytes are lost
	Warning Severity = "warning" // it works, and slower or less surely than it could
	Note    Severity = "note"    // worth knowing
)

// Finding is one thing that was seen.
type Finding struct {
	Code     string   `json:"code"` // stable, for programs; docs/doctor.md lists them
	Severity Severity `json:"severity"`
	Host     string   `json:"host"`  // where to mend it; "" for the way between
	Seen     string   `json:"seen"`  // what was seen
	Bound    string   `json:"bound"` // what would be right
	Why      string   `json:"why"`   // why it matters
	Mend     []string `json:"mend"`  // commands; of several without further words, one
}

// Findings judges a report. It depends on nothing else: no clock, no system.
func Findings(r *Report) []Finding {
	found := []Finding{}
	for _, rule := range rules() {
		found = append(found, rule(r)...)
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(found, func(a, b Finding) int { return rank[a.Severity] - rank[b.Severity] })
	return found
}

type rule func(*Report) []Finding

func rules() []rule {
	return []rule{notReached, cutShort, sameHost, stalled, pathMTU, unequalMTU, smallMTU, loss, errorsSeen, linkLost, halfDuplex, slowRate, unequalRates,
		roundTrip, busyCores, moderation, halfSpeed, governor, sharedSubnets, strictFilter, containerAddress, wireless, routed, moreLanes, firewalls}
}

// end is one host of the way, as findings name it.
type end struct {
	*Host
	other *Host
	near  bool
}

// ends are the hosts that are known: both, once the peer was reached; one where they are the same.
func (r *Report) ends() []end {
	list := []end{{&r.Near, r.Far, true}}
	if r.Far != nil && !r.loopback() {
		list = append(list, end{r.Far, &r.Near, false})
	}
	return list
}

// loopback says whether the way leaves this host at all.
func (r *Report) loopback() bool { return r.Near.carrier().Loopback }

// name is the host as a reader knows it: two hosts may have the same name.
func (e end) name() string {
	if e.near {
		return "this host"
	}
	return "the peer"
}

func (r *Report) port() string {
	_, port, err := net.SplitHostPort(r.Peer)
	if err != nil {
		return r.Peer
	}
	return port
}

func one(f Finding) []Finding { return []Finding{f} }

func cutShort(r *Report) []Finding {
	if r.CutShort == "" {
		return nil
	}
	return one(Finding{Code: "cut-short", Severity: Error, Seen: "the measurement broke off: " + r.CutShort, Bound: "it ends by itself",
		Why: "what could not be measured may be what is wrong", Mend: []string{"hipfabric doctor links --peer " + r.Peer + " --timeout 5m"}})
}

func sameHost(r *Report) []Finding {
	if r.Far == nil || !r.loopback() {
		return nil
	}
	return one(Finding{Code: "same-host", Severity: Note, Seen: fmt.Sprintf("%s is an address of this host", r.Peer), Bound: "an address of another host",
		Why: "no cable and no interface was measured", Mend: []string{}})
}
