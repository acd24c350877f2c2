package rail

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
)

// The bounds of a list of selectors.
const (
	MaxSelectors = 32
	maxSelector  = 64 // bytes
)

const allowed = "an interface prefix (eth), =exact (=eth1) or CIDR (10.0.0.0/8) is needed, with ^ before it to exclude"

// Selectors choose among a host's addresses. The zero value chooses all.
type Selectors struct {
	field string
	texts []string
	list  []selector
}

// selector is one of them: a network, or else a name.
type selector struct {
	exclude, exact bool
	name           string
	network        netip.Prefix
}

// Parse reads selectors; field names them in errors, which are ErrInvalid.
func Parse(field string, texts []string) (Selectors, error) {
	if len(texts) > MaxSelectors {
		return Selectors{}, fabric.Invalidf("%s has %d selectors; at most %d are allowed", field, len(texts), MaxSelectors)
	}
	s := Selectors{field: field, texts: slices.Clone(texts)}
	for i, text := range texts {
		one, err := parse(text)
		if err != nil {
			return Selectors{}, fabric.Invalidf("%s[%d] is %.*q: %v; %s", field, i, maxSelector, text, err, allowed)
		}
		s.list = append(s.list, one)
	}
	return s, nil
}

func parse(text string) (selector, error) {
	if len(text) > maxSelector {
		return selector{}, fmt.Errorf("it has %d bytes, and at most %d are allowed", len(text), maxSelector)
	}
	var s selector
	rest, exclude := strings.CutPrefix(text, "^")
	rest, exact := strings.CutPrefix(rest, "=")
	s.exclude, s.exact = exclude, exact
	switch {
	case rest == "":
		return s, fmt.Errorf("it names nothing")
	case strings.Contains(rest, "/"):
		network, err := netip.ParsePrefix(rest)
		if err != nil || exact {
			return s, fmt.Errorf("it is no CIDR")
		}
		s.network = network.Masked()
		return s, nil
	case strings.ContainsAny(rest, "^=, \t\n"):
		return s, fmt.Errorf("no interface has such a name")
	}
	if a, err := netip.ParseAddr(rest); err == nil {
		return s, fmt.Errorf("an address alone says no subnet, write %v/%d", a, a.BitLen())
	}
	s.name = rest
	return s, nil
}

func (s *selector) matches(name string, a netip.Addr) bool {
	switch {
	case s.network.IsValid():
		return s.network.Contains(a)
	case s.exact:
		return name == s.name
	default:
		return strings.HasPrefix(name, s.name)
	}
}

// Allow says whether an interface's address is chosen: by one of the selectors that choose, if there are any, and
// excluded by none.
func (s *Selectors) Allow(name string, a netip.Addr) bool {
	return s.included(name, a) && !slices.ContainsFunc(s.list, func(x selector) bool { return x.exclude && x.matches(name, a) })
}

func (s *Selectors) included(name string, a netip.Addr) bool {
	choosers := 0
	for _, x := range s.list {
		if x.exclude {
			continue
		}
		if choosers++; x.matches(name, a) {
			return true
		}
	}
	return choosers == 0
}

// names says whether a selector asks for this interface by its name, which overrides what is left out by default; no
// network contains the zero address.
func (s *Selectors) names(name string) bool {
	return slices.ContainsFunc(s.list, func(x selector) bool { return !x.exclude && x.matches(name, netip.Addr{}) })
}

// Check refuses selectors of which none finds anything on this host: a misspelt name should not go unnoticed.
func (s *Selectors) Check(all []Interface) error {
	if !slices.ContainsFunc(s.list, func(x selector) bool { return !x.exclude }) {
		return nil
	}
	var there []string
	for i := range all {
		f := &all[i]
		if f.Loopback || !f.Up {
			continue
		}
		for _, p := range f.Addresses {
			if s.included(f.Name, p.Addr()) {
				return nil
			}
		}
		there = append(there, f.String())
	}
	what, verb := fmt.Sprintf("%s %q", s.field, s.texts), "match"
	if len(s.texts) == 1 {
		what, verb = fmt.Sprintf("%s[0] %q", s.field, s.texts[0]), "matches"
	}
	list := "none"
	if len(there) > 0 {
		list = strings.Join(there, ", ")
	}
	return fabric.Invalidf("%s %s no interface that is up and has an address; there are: %s", what, verb, list)
}
