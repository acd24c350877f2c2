package roce

import (
	"context"
	"errors"

	"github.com/hipfabric/hipfabric/fabric"
)

// The steps' names, in votes; survey has those before.
const (
	stepQueuePairs = "RoCE queue pairs"
	stepConnect    = "RoCE connections"
	stepProbe      = "RoCE probe"
)

// Open brings up lanes to every other rank and returns once a frame has gone each way on each; ctx ends it. All ranks call it, and it fails on
// all of them alike, with the reason of the rank where it did. Errors: ErrInvalid, ErrUnsupported for hosts that RoCE does not join, what Mesh
// gives. A world of 1 needs no RDMA.
func Open(ctx context.Context, m Mesh, d Driver, c Config) (*Transport, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if w := m.World(); w < 1 || w > fabric.MaxWorld {
		return nil, fabric.Invalidf("world %d is outside 1..%d", w, fabric.MaxWorld)
	}
	c = c.withDefaults()
	t := newTransport(m, d, c)
	if t.world == 1 {
		return t, nil
	}
	all, err := survey(ctx, m, d, c)
	if err != nil {
		return nil, err
	}
	if err := t.bringUp(ctx, m, all); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// bringUp takes the steps from queue pairs to the probe, each ended by a vote.
func (t *Transport) bringUp(ctx context.Context, m Mesh, all []circuit) error {
	mine := ours(all, t.rank)
	relayed, err := t.build(all, mine)
	if len(relayed) > 0 {
		t.relays = newRelays(t, relayed)
	}
	if err := m.Vote(ctx, stepQueuePairs, err); err != nil {
		return err
	}
	said, err := m.AllGather(ctx, encodeWires(mine))
	if err != nil {
		return err
	}
	if err := m.Vote(ctx, stepConnect, t.meet(all, mine, said)); err != nil {
		return err
	}
	t.join(all, mine)
	t.layout.Arena = t.arena
	for _, h := range t.hcas {
		h.follow(func(text string) { t.report(t.lost(h, text)) })
	}
	if t.relays != nil {
		t.relays.start()
	}
	return m.Vote(ctx, stepProbe, t.probe(ctx))
}
