package fabric

import "time"

// Stats are a group's monotonic counters, read by value.
type Stats struct {
	Calls     uint64 // completed; one that its path moves in parts counts with the first
	Failed    uint64 // ended by an error of group scope
	Refused   uint64 // ended by an error of call scope: nothing moved
	Bytes     uint64 // of this rank's in, in completed calls
	CallNs    uint64 // spent in completed calls, begin to end
	Transport TransportStats
}

// TransportStats are a path's monotonic counters. Polls and Parks say how waits were spent.
type TransportStats struct {
	Kind  string
	Polls uint64 // rounds of polling that moved nothing
	Parks uint64 // times a wait gave up its thread
	Peers []PeerStats
}

// PeerStats counts what moved between this rank and one peer.
type PeerStats struct {
	Peer           int
	SentBytes      uint64 // headers included
	ReceivedBytes  uint64
	SentFrames     uint64
	ReceivedFrames uint64
	Rails          []RailStats // of which the others are the sums
}

// RailStats counts what moved over one way to a peer.
type RailStats struct {
	Name           string // as Rail.String gives it
	Lanes          int    // connections that are up now; 0 is a dead rail
	Lost           uint64 // connections that died
	SentBytes      uint64
	ReceivedBytes  uint64
	SentFrames     uint64
	ReceivedFrames uint64
	Retransmits    uint64        // segments that were sent again, sampled a few times a second; 0 where the system does not say, or a pair has one lane
	RoundTrip      time.Duration // smoothed, of the slowest lane; 0 likewise
}
