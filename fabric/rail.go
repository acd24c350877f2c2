package fabric

import (
	"fmt"
	"net/netip"
)

// Rail is one way between two ranks: a cable, or a subnet in which both have an address. Rail 0 is the base: the way on
// which the ranks met.
type Rail struct {
	Index         int        // in the order on which both ranks agree
	Interface     string     // this rank's; "" where the route decides
	Local, Remote netip.Addr // its ends; a zero Local where the route decides
	SameHost      bool       // the bytes meet no wire
}

// String names the rail as errors, logs and tables do.
func (r Rail) String() string {
	name := r.Interface
	if name == "" {
		name = "route"
	}
	if !r.Local.IsValid() {
		return fmt.Sprintf("%s to %v", name, r.Remote)
	}
	return fmt.Sprintf("%s %v-%v", name, r.Local, r.Remote)
}

// Lane names one connection of a pair of ranks.
type Lane struct {
	Channel    string // which of a group's paths it serves; at most 16 bytes
	Index      int    // among the pair's lanes of that channel
	Rail       int    // Rail.Index
	Generation int    // how often it has been dialled anew
}
