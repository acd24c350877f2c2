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
	// is whole. The buffers, Stride, RowBytes and lengths are the part's: an AllGatherRows part is some rows of each rank,
	// or a piece of one row of each, which is then its RowBytes. Whole is of AllGatherV the stride; of AllToAllV anything
	// that all ranks agree on, as the largest block; of SendRecv what is sent. Every rank cuts alike, so that the parts
	// of a call follow each other with nothing between them, all with the number of the call.
	Whole int
	// FromWhole is of a cut SendRecv the bytes that are received. A part with Peer -1 sends nothing, one with From -1
	// receives nothing: that half has no bytes left.
	FromWhole int
	Part      uint32 // of Whole, from 0
	// WholeHash is of a cut AllGatherV or AllGatherRows the Hash that the whole call has, which parts of two layouts may not
	// tell apart; 0: the part's own.
	WholeHash uint64
	Numbered  // what the Collective adds
}

// Numbered is what the Collective adds to a checked call.
type Numbered struct {
	Class   Class
	Seq     uint64 // Group: of the group. Pair: of the ordered pair this rank -> Peer
	FromSeq uint64 // Pair: of the ordered pair From -> this rank
	// Bytes are of a rank's contribution, as ranks compare it (AllGatherV: the stride); of a part: Whole. Pair: of what
	// this rank sends, or only receives.
	Bytes     int
	FromBytes int // Pair: of what this rank receives, as the two compare it
	// Hash is of Lengths, for AllGatherV; RowBytes, for AllGatherRows; 0 elsewhere; exclusive-or Part<<HashPartShift.
	Hash uint64
}

// HashPartShift is where in a Hash the Part is, above any length of a row.
const HashPartShift = 40

// Sends says whether this rank's part of a Pair call has a sending half; its bytes are In.
func (c *Call) Sends() bool {
	return c.Op == Exchange || c.Op == Send || c.Op == SendRecv && c.Peer >= 0
}

// Receives says whether this rank's part of a Pair call has a receiving half; its bytes go to Out.
func (c *Call) Receives() bool {
	return c.Op == Exchange || c.Op == Recv || c.Op == SendRecv && c.From >= 0
}

// cut says whether this is a part of a call.
func (c *Call) cut() bool { return c.Whole > 0 || c.FromWhole > 0 }

// follows says whether this part, which is not the first, comes after its forerunner.
func (c *Call) follows(last *Call) bool {
	return c.Op == last.Op && c.Part == last.Part+1 && c.Whole == last.Whole && c.FromWhole == last.FromWhole
}

// HashLengths is what a Hash is of lengths: FNV-1a, so that ranks can compare vectors by eight bytes.
func HashLengths(lengths []int) uint64 {
	h := uint64(14695981039346656037)
	for _, n := range lengths {
		for v, i := uint64(n), 0; i < 8; i++ {
			h = (h ^ (v & 0xff)) * 1099511628211
			v >>= 8
		}
	}
	return h
}
