package bootstrap

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/rail"
	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// nics are this host's interfaces, and the choice among them.
type nics struct {
	all       []rail.Interface
	selectors rail.Selectors
}

// look lists the interfaces. A system that will not list them has no rails but the base.
func (s *Session) look() error {
	all, err := s.cfg.list()
	if err != nil {
		s.log.Warn("no rails but the first can be found", "err", err)
	}
	selectors, err := rail.Parse("Rails", s.cfg.Rails)
	if err == nil {
		err = selectors.Check(all)
	}
	s.nics = nics{all, selectors}
	return err
}

// cables are the addresses to use beside the base, which is where this rank listens or would: none where the policy or
// the base keeps to loopback, or where Listen says all.
func (s *Session) cables(base []netip.AddrPort) []rail.Address {
	if len(s.cfg.Listen) > 0 || len(s.cfg.Secret) == 0 && !s.cfg.Insecure {
		return nil
	}
	outside := false
	used := map[netip.Addr]bool{}
	for _, a := range base {
		outside = outside || !a.Addr().IsLoopback()
		used[a.Addr().WithZone("")] = true
	}
	if !outside {
		return nil
	}
	var cables []rail.Address
	for _, a := range rail.Choose(s.nics.all, &s.nics.selectors) {
		if !used[a.Addr] && len(a.Interface) <= maxDevice && len(cables)+len(base) < maxListen {
			cables = append(cables, a)
		}
	}
	return cables
}

// advertise completes a place by where this rank listens.
func (s *Session) advertise(p place) place {
	for i, a := range s.listener.bound() {
		p.listen = append(p.listen, s.address(a, i >= s.listener.asked))
	}
	return p
}

// tell logs what this rank listens on beyond what was asked for.
func (s *Session) tell() {
	if l := s.listener; l != nil && len(l.sockets) > l.asked {
		s.log.Info("listening on every rail", "addr", strings.Join(l.addresses(), " "))
	}
}

// announce completes the place of a rank that dials all others and listens nowhere.
func (s *Session) announce(ctx context.Context, p place, local netip.Addr) place {
	_, base, err := s.cfg.listenAddresses(ctx, local)
	if err != nil {
		base = []netip.AddrPort{netip.AddrPortFrom(local, 0)}
	}
	for _, a := range base[:min(len(base), maxListen)] {
		p.listen = append(p.listen, s.address(netip.AddrPortFrom(a.Addr(), 0), false))
	}
	for _, a := range s.cables(base) {
		p.listen = append(p.listen, s.address(netip.AddrPortFrom(a.Addr, 0), true))
	}
	return p
}

func (s *Session) address(at netip.AddrPort, cable bool) address {
	found := rail.Find(s.nics.all, at.Addr())
	a := address{at: netip.AddrPortFrom(found.Addr, at.Port()), cable: cable, chosen: s.nics.selectors.Allow(found.Interface, found.Addr)}
	if len(found.Interface) <= maxDevice {
		a.bits, a.device = found.Bits, found.Interface
	}
	return a
}

// way is a rail with where to dial it; rail 0, where it is the base, has several such places.
type way struct {
	fabric.Rail
	to    netip.AddrPort // of the lower rank
	cable bool           // which listens there for this rail alone
}

// settle takes the table of ranks, from which every rank draws the same rails.
func (s *Session) settle(places []place) {
	s.places, s.ways, s.paths = places, make([][]way, len(places)), make([][]way, len(places))
	for peer := range places {
		if peer == s.cfg.Rank {
			continue
		}
		s.ways[peer] = s.cfg.ways(places, s.cfg.Rank, peer)
		if w := &s.ways[peer][0]; len(s.cfg.Rails) > 0 && !w.SameHost && !s.nics.selectors.Allow(w.Interface, w.Local) {
			s.log.Warn("no way to this rank is left that both ranks' Rails allow; the way to rank 0 is used", "peer", peer, "rail", w.String())
		}
		if min(peer, s.cfg.Rank) == 0 {
			s.paths[peer] = pathsTo(places, s.cfg.Rank, peer, s.ways[peer])
		}
	}
}

// pathsTo are the ways of a control connection: the base, on which it began though a rank's Rails may exclude it, and the
// other rails.
func pathsTo(places []place, me, peer int, rails []way) []way {
	base := wayOf(places, me, peer, 0, baseOf(places, 0, max(me, peer)))
	if rails[0].Local == base.Local && rails[0].Remote == base.Remote {
		return rails
	}
	return append([]way{base}, rails...)
}

func waysTo(places []place, me, peer int) []way {
	var ways []way
	for i, e := range endsOf(places, min(me, peer), max(me, peer)) {
		ways = append(ways, wayOf(places, me, peer, i, e))
	}
	return ways
}

func wayOf(places []place, me, peer, i int, e ends) way {
	same := places[me].net == places[peer].net
	mine, theirs := e.higher, e.lower
	if me < peer {
		mine, theirs = e.lower, e.higher
	}
	w := way{fabric.Rail{Index: i, Local: mine.at.Addr(), Remote: theirs.at.Addr(), SameHost: same}, e.lower.at, e.lower.cable}
	if !same {
		w.Interface = mine.device
	}
	return w
}

// ends are the two of one rail.
type ends struct{ lower, higher address }

// baseOf is the way to rank 0, or between the addresses from which both reached rank 0.
func baseOf(places []place, lower, higher int) ends {
	l, h := &places[lower], &places[higher]
	met := l.from
	if lower == 0 {
		met = h.met
	}
	return ends{l.find(met), h.find(h.from)}
}

// endsOf are the rails of a pair. The first is the base if it joins rank 0 or one subnet; a base that a rank's Rails
// exclude, or that only a route joins, stands back when another is there. Then comes every further subnet that the two
// share.
func endsOf(places []place, lower, higher int) []ends {
	l, h := &places[lower], &places[higher]
	base := baseOf(places, lower, higher)
	if l.net == h.net {
		return []ends{base}
	}
	lows, highs := l.chosen(), h.chosen()
	pairs := rail.Match(lows, highs)
	if len(pairs) == 0 {
		return []ends{base}
	}
	var all []ends
	if base.lower.chosen && base.higher.chosen && (lower == 0 || rail.SameSubnet(base.lower.rail(), base.higher.rail())) {
		all = append(all, base)
		if taken := (rail.Pair{Lower: index(lows, base.lower), Higher: index(highs, base.higher)}); taken.Lower >= 0 && taken.Higher >= 0 {
			pairs = rail.Match(lows, highs, taken)
		}
	}
	for _, p := range pairs {
		all = append(all, ends{l.find(lows[p.Lower].Addr), h.find(highs[p.Higher].Addr)})
	}
	return all
}

func (a address) rail() rail.Address {
	return rail.Address{Interface: a.device, Addr: a.at.Addr(), Bits: a.bits}
}

// find gives what is advertised of an address; of one that is not, no more than itself.
func (p *place) find(a netip.Addr) address {
	for _, x := range p.listen {
		if x.at.Addr() == a {
			return x
		}
	}
	return address{at: netip.AddrPortFrom(a, 0), chosen: true}
}

func (p *place) chosen() []rail.Address {
	var all []rail.Address
	for _, a := range p.listen {
		if a.chosen {
			all = append(all, a.rail())
		}
	}
	return all
}

func index(all []rail.Address, a address) int {
	for i := range all {
		if all[i].Addr == a.at.Addr() {
			return i
		}
	}
	return -1
}

// Rails are the ways to another rank, in the order on which both ends agree: at least one, of which the first is the one
// on which the ranks met, and a further one for every other subnet that they share. Fixed from Join's return on;
// none to this rank itself.
func (s *Session) Rails(peer int) []fabric.Rail {
	if peer < 0 || peer >= len(s.ways) {
		return nil
	}
	rails := make([]fabric.Rail, 0, len(s.ways[peer]))
	for _, w := range s.ways[peer] {
		rails = append(rails, w.Rail)
	}
	return rails
}

// waysText names the ways to a rank where there are several, for the cause that ends a group when none is left.
func (s *Session) waysText(peer int) string {
	rails := s.Rails(peer)
	if len(rails) < 2 {
		return ""
	}
	var names []string
	for _, r := range rails {
		names = append(names, r.String())
	}
	return "; the ways to it: " + strings.Join(names, "; ")
}

// wayTo is how and where a lane is dialled.
func (s *Session) wayTo(l lane) (net.Dialer, []netip.AddrPort) {
	d := net.Dialer{Timeout: dialTime, KeepAlive: -1}
	w := &s.ways[l.peer][l.Rail]
	if l.Rail == 0 && !w.cable {
		return d, s.dataAddresses(l.peer)
	}
	d.LocalAddr, d.Control = &net.TCPAddr{IP: w.Local.AsSlice()}, toDevice(w.Interface)
	return d, []netip.AddrPort{w.to}
}

// dataAddresses is where a lower rank listens for the first rail: for rank 0 first the address at which it was reached.
// Those of cables answer on their own interface alone.
func (s *Session) dataAddresses(peer int) []netip.AddrPort {
	var listed []netip.AddrPort
	if peer == 0 {
		listed = append(listed, s.reached)
	}
	if peer < s.cfg.Rank && peer < len(s.ways) {
		listed = append(listed, s.ways[peer][0].to)
	}
	for _, a := range s.places[peer].listen {
		if !a.cable {
			listed = append(listed, a.at)
		}
	}
	var addresses []netip.AddrPort
	seen := map[netip.AddrPort]bool{}
	for _, a := range listed {
		if a.Addr().IsLinkLocalUnicast() && a.Addr().Is6() {
			// A zone names an interface of the host that wrote it; here it is another.
			a = netip.AddrPortFrom(a.Addr().WithZone(s.zone), a.Port())
		}
		if !seen[a] && a.IsValid() && a.Port() != 0 {
			seen[a] = true
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// cameBy says whether an accepted connection arrived at its rail's address.
func (s *Session) cameBy(c *net.TCPConn, l lane) bool {
	w := &s.ways[l.peer][l.Rail]
	return l.Rail == 0 && !w.cable || addrOf(c.LocalAddr()) == w.Local
}

// toDevice binds a socket to an interface, so that it sends and hears on no other. Where that is not allowed or not to be
// had, the routes decide.
func toDevice(name string) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var bound error
		if err := c.Control(func(fd uintptr) { bound = sock.ToDevice(fd, name) }); err != nil {
			return err
		}
		return bound
	}
}
