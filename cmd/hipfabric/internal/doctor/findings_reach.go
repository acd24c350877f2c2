package doctor

import (
	"fmt"
	"net/netip"
	"strings"
)

func notReached(r *Report) []Finding {
	n := r.NotReached
	if n == nil {
		return nil
	}
	f := Finding{Code: n.Kind, Severity: Error, Host: "the peer", Bound: "an answer from hipfabric doctor links --listen"}
	listen := r.FarCommand
	switch n.Kind {
	case Refused:
		f.Seen = fmt.Sprintf("%s refused the connection", r.Peer)
		f.Why = "the host is there, but nothing listens on the port, or a firewall rejects it"
		f.Mend = append([]string{"on the peer: " + listen}, openPort(r)...)
	case Silent:
		f.Seen = fmt.Sprintf("nothing answered at %s in %.1f s", r.Peer, float64(n.WaitedMs)/1000)
		f.Why = "a firewall drops packets to the port, the address is another network's, or the host is off"
		if n.Neighbour == "answers" {
			f.Why = "the host answers on the link (ARP) but not on the port: a firewall drops the packets"
		}
		f.Mend = append(openPort(r), "ping -c 3 "+r.host())
	case Unreachable:
		f.Seen = fmt.Sprintf("%s cannot be reached: %s", r.Peer, n.Text)
		f.Why = "there is no route, nobody has this address on the link, or a firewall rejects with an unreachable message, as firewalld does"
		f.Mend = []string{"ip route get " + r.host(), "ip -br addr      (both hosts: addresses of one subnet, interfaces UP)"}
		if n.Neighbour == "answers" && !strings.Contains(n.Text, "network is unreachable") { // which this host says by itself
			f.Why = "the host answers on the link (ARP), so that a firewall rejects the port, as firewalld does"
			f.Mend = openPort(r)
		} else if n.Address != "" {
			f.Mend = append(f.Mend, openPort(r)...)
		}
	case Unauthorized:
		f.Seen = n.Text
		f.Bound = "the same secret on both hosts, or none within one host"
		f.Why = "who cannot prove the secret is not heard; a group of another name, such as a running engine's, refuses alike"
		f.Mend = []string{"hipfabric keygen --force hipfabric.key", "copy hipfabric.key to both hosts and name it to both ends: --secret-file hipfabric.key"}
	case Mismatch:
		f.Seen, f.Bound = n.Text, "the same version on both hosts"
		f.Why = "the two could not read each other's measurements"
		f.Mend = []string{"hipfabric version      (both hosts; install the newer on both)"}
	case Stranger:
		f.Seen = fmt.Sprintf("%s is some other program's: %s", r.Peer, n.Text)
		f.Why = "what listens there does not speak hipfabric's protocol"
		f.Mend = []string{fmt.Sprintf("on the peer: ss -ltnp 'sport = :%s'", r.port()), "on the peer, with a port that is free: " + listen}
	case Busy:
		f.Seen = fmt.Sprintf("%s is being measured by another host, or a group runs there", r.Peer)
		f.Why = "one peer is measured at a time"
		f.Mend = []string{"try again when it has ended"}
	default:
		f.Seen = fmt.Sprintf("%s takes the connection and says nothing: %s", r.Peer, n.Text)
		f.Why = "its program is stopped or hangs, or something between takes connections for it"
		f.Mend = []string{fmt.Sprintf("on the peer: ss -ltnp 'sport = :%s'", r.port())}
	}
	return one(f)
}

func (r *Report) host() string {
	if cut := strings.LastIndexByte(r.Peer, ':'); cut > 0 {
		return strings.Trim(r.Peer[:cut], "[]")
	}
	return r.Peer
}

// openPort are the lines that let this host in at the peer, one for each firewall that it may have.
func openPort(r *Report) []string {
	lines := Allow(r.port(), r.NotReached.Address)
	for i, firewall := range []string{"nft", "ufw", "firewalld"} {
		lines[i] = fmt.Sprintf("on the peer, with %s: %s", firewall, lines[i])
	}
	return lines
}

// Allow are the commands by which nft, ufw and firewalld let in connections to a port, from one address where it is known.
func Allow(port, from string) []string {
	ip, err := netip.ParseAddr(from)
	if err != nil {
		return []string{
			fmt.Sprintf("nft insert rule inet filter input tcp dport %s accept", port),
			fmt.Sprintf("ufw allow %s/tcp", port),
			fmt.Sprintf("firewall-cmd --add-port=%s/tcp", port),
		}
	}
	family, nft := "ipv4", "ip"
	if ip.Is6() {
		family, nft = "ipv6", "ip6"
	}
	return []string{
		fmt.Sprintf("nft insert rule inet filter input %s saddr %v tcp dport %s accept", nft, ip, port),
		fmt.Sprintf("ufw allow from %v to any port %s proto tcp", ip, port),
		fmt.Sprintf(`firewall-cmd --add-rich-rule='rule family="%s" source address="%v" port port="%s" protocol="tcp" accept'`, family, ip, port),
	}
}

// firewalls tells of those at work at an end that was reached: the measured port is open, others need not be.
func firewalls(r *Report) []Finding {
	if r.Far == nil || r.loopback() {
		return nil
	}
	var found []Finding
	for _, e := range r.ends() {
		if len(e.Firewalls) == 0 {
			continue
		}
		from := ""
		if e.other != nil {
			from = e.other.Address
		}
		mend := Allow("PORT", from)
		found = append(found, Finding{Code: "firewall", Severity: Note, Host: e.name(), Seen: strings.Join(e.Firewalls, ", ") + " at work",
			Bound: "the ports of Config.Master and Config.Listen open to the other ranks",
			Why:   "this port got through; in groups of three and more, ranks other than 0 listen too, on ports of their own unless Config.Listen says which",
			Mend:  Pick(e.Firewalls, mend)})
	}
	return found
}

// Pick keeps the lines of those firewalls that are at work; an unknown one's owner reads nft's.
func Pick(active, lines []string) []string {
	var kept []string
	for i, name := range []string{"nft", "ufw", "firewalld"} {
		for _, a := range active {
			if a == name {
				kept = append(kept, lines[i])
			}
		}
	}
	if kept == nil {
		return lines[:1]
	}
	return kept
}
