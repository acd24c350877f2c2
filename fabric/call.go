package fabric

// Call is one call of any operation: what is validated, numbered, compared between ranks, recorded and moved.
// An engine that uses Begin fills Op and what that operation takes; the rest is the Collective's.
type Call struct {
	Op     Op
	DType  DType    // reductions only; moves count bytes
	Reduce ReduceOp // reductions only
	Peer   int      // Exchange, SendRecv, Send: whom this rank sends to
	From   int      // SendRecv, Recv: whom this rank receives from; set to Peer for Exchange
	Root   int      // Broadcast

	In  []byte // what this rank contributes; nil for Recv, for a Broadcast's other ranks and for Barrier
	Out []byte // what this rank gets; nil for Send, for a Broadcast's root and for Barrier

	Stride    int   // AllGatherV: bytes between blocks of Out
	RowBytes  int   // AllGatherRows: bytes of a row
	Lengths   []int // AllGatherV: bytes of each rank's block; AllToAllV: bytes from each rank
	InLengths []int // AllToAllV: bytes to each rank

	Device OnDevice // StreamCollective: the buffers, instead of In and Out
	// Whole is the bytes of the call that this is a part of, as ranks compare them, where a path moves one in parts; 0: it
	// is whole. Every rank cuts alike.
	Whole    int
	Part     uint32 // of Whole, from 0
	Numbered        // what the Collective adds
}

// Numbered is what the Collective adds to a checked call.
type Numbered struct {
	Class   Class
	Seq     uint64 // Group: of the group. Pair: of the ordered pair this rank -> Peer
	FromSeq uint64 // Pair: of the ordered pair From -> this rank
	Bytes   int    // of a rank's contribution, as ranks compare it (AllGatherV: the stride)
	Hash    uint64 // of Lengths, for AllGatherV; RowBytes, for AllGatherRows; 0 elsewhere
}

// Sends says whether this rank's part of a Pair call has a sending half; its bytes are In.
func (c *Call) Sends() bool { return c.Op == Exchange || c.Op == SendRecv || c.Op == Send }

// Receives says whether this rank's part of a Pair call has a receiving half; its bytes go to Out.
func (c *Call) Receives() bool { return c.Op == Exchange || c.Op == SendRecv || c.Op == Recv }

// hashLengths is FNV-1a over the lengths, so that ranks can compare vectors by eight bytes.
func hashLengths(lengths []int) uint64 {
	h := uint64(14695981039346656037)
	for _, n := range lengths {
		for v, i := uint64(n), 0; i < 8; i++ {
			h = (h ^ (v & 0xff)) * 1099511628211
			v >>= 8
		}
	}
	return h
}
