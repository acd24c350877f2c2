package roce

import "context"

// Mesh is what Open needs of the bootstrap. All ranks make the same calls in the same order; each blocks until all have, and ends by
// ctx or by the group's failure.
type Mesh interface {
	Rank() int
	World() int
	ID() [16]byte // the session
	// AllGather gives every rank's blob, of up to 64 KiB, on every rank.
	AllGather(ctx context.Context, blob []byte) ([][]byte, error)
	// Vote is nil on every rank where every rank's no is, and else the same error on every rank: it has the step and each no's text.
	Vote(ctx context.Context, step string, no error) error
}
