package fabric

// Stats are a group's monotonic counters, read by value.
type Stats struct {
	Calls     uint64 // completed
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
}
