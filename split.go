package hipfabric

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

// NoColor, as Split's color, joins none of the new groups.
const NoColor = -1

const (
	maxColor = math.MaxInt32
	maxLanes = 64
)

// SplitOptions shape the groups that a Split makes. All ranks give the same.
type SplitOptions struct {
	Lanes    int           // connections to each member; 0 is 1, at most 64
	Isolated bool          // a failure ends this group, and those split from it, but not its parent
	Timeout  time.Duration // of its calls, without progress; 0 is the parent's, NoTimeout is none, else 10 ms to 24 h
}

// Split makes groups of this group's ranks: those that give one color are a group, in the order of key and, where keys
// are equal, of rank. Every rank calls it, in the order of its Host calls, among which it is an all-gather, with one name
// and the same options; color NoColor (-1) joins none and gives a nil Group. The group is called NAME/name.color, NAME
// being this group's.
//
// The new group has connections and a sequence of its own: its calls run at the same time as those of other groups, each
// from a goroutine of its own. It shares the control connections and the heartbeat. Its failure ends this group too, with
// one cause, unless SplitOptions.Isolated; this group's failure, or a rank's death, ends it. Close it, or leave that
// to the Close of this group; in any order. A rank that still calls a group which another has closed gets ErrPeerFailed:
// meet at a Barrier first. It can be split again.
//
// Split blocks until all ranks have their connections. All ranks get the same outcome: a Split that failed leaves this
// group as it was, unless the group itself has failed. The ranks' meeting is bounded by Timeout as any call; then ctx, on any rank, or
// OpenTimeout ends the wait for connections. Errors are *fabric.OpError with Op "split": ErrInvalid, before anything
// moved, for an argument out of its bounds, a call of this group in flight or another Split of it; ErrClosed;
// ErrMismatch when names or options differ; ErrTimeout, ErrAborted or ErrUnsupported (too few file descriptors) when a
// rank could not connect; this group's cause when it has failed.
//
// A group of n ranks costs each n-1 sockets for each lane (at least one a rail), on Linux 2 descriptors more, and about 30 KiB and 2 KiB a
// socket of memory, beside what the system keeps for a socket; the first large reduction adds room for n contributions.
// It has no thread and, unless Isolated or with several lanes a pair, no goroutine. A wait spins as one of an opened group does, and yields its core
// when the groups of this host's ranks, one waiting in each, would be more than its cores.
func (g *Group) Split(ctx context.Context, name string, color, key int, o SplitOptions) (*Group, error) {
	mine := proposal{name: name, color: color, key: key, options: o}
	if err := mine.validate(g.cfg.Name); err != nil {
		return nil, splitError(&g.cfg, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, splitError(&g.cfg, err)
	}
	if !g.splitting.TryLock() {
		return nil, splitError(&g.cfg, fabric.Invalidf("another Split of group %q is in progress; one at a time", g.cfg.Name))
	}
	defer g.splitting.Unlock()
	// Before the ranks meet, so that none can miss what another says of its part.
	meeting, err := g.session.Sub(bootstrap.SubConfig{Name: g.cfg.Name, Key: splitKey(g.sub, g.splits, meetingColor),
		Members: g.members(), Parent: g.sub, Isolated: true})
	if err != nil {
		return nil, splitError(&g.cfg, err)
	}
	defer meeting.Close()
	all, err := g.meet(&mine)
	if err != nil {
		return nil, splitError(&g.cfg, err)
	}
	g.splits++
	if err := agree(all); err != nil {
		return nil, splitError(&g.cfg, err)
	}
	child, err := g.open(ctx, meeting, &mine, all)
	if err != nil {
		return nil, splitError(&g.cfg, err)
	}
	return child, nil
}

// meet gives the proposals of all ranks of g.
func (g *Group) meet(mine *proposal) ([]proposal, error) {
	blobs := make([]byte, g.cfg.World*proposalSize)
	if err := g.host.AllGather(blobs, mine.encode()); err != nil {
		return nil, err
	}
	all := make([]proposal, g.cfg.World)
	for r := range all {
		if err := all[r].decode(blobs[r*proposalSize:][:proposalSize]); err != nil {
			cause := &fabric.Cause{Kind: fabric.ErrDesync, Peer: r, From: g.cfg.Rank,
				Text: fmt.Sprintf("rank %d is in a split, rank %d in an all-gather of %d bytes", g.cfg.Rank, r, proposalSize)}
			return nil, g.in.Report(cause)
		}
	}
	return all, nil
}

// open brings up this rank's new group, nil for NoColor, and returns once all ranks have theirs: prepare, vote, then
// enter.
func (g *Group) open(ctx context.Context, meeting *bootstrap.Sub, mine *proposal, all []proposal) (*Group, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.OpenTimeout)
	defer cancel()
	var child *Group
	if mine.color != NoColor {
		var err error
		if child, err = g.prepare(ctx, meeting, mine, all); err != nil {
			// The report ends the others' wait for this rank's connections.
			return nil, meeting.Report(splitCause(g.cfg.Rank, mine.groupName(g.cfg.Name), err))
		}
	}
	switch err := meeting.Agree(ctx); {
	case child == nil:
		return nil, err
	case err != nil:
		_ = child.leave(ctx)
		return nil, err
	}
	child.enter(mine.options.Isolated)
	return child, nil
}

// prepare connects the members of mine's color; until they have agreed a failure is the meeting's.
func (g *Group) prepare(ctx context.Context, meeting *bootstrap.Sub, mine *proposal, all []proposal) (*Group, error) {
	c := g.cfg
	ranks, at := membersOf(all, g.cfg.Rank)
	c.Name, c.Rank, c.World, c.StatusSocket = mine.groupName(g.cfg.Name), at, len(ranks), ""
	c.Lanes = max(mine.options.Lanes, 1)
	if mine.options.Timeout != 0 {
		c.Timeout = mine.options.Timeout
	}
	outer, members := g.members(), make([]int, len(ranks))
	for i, r := range ranks {
		members[i] = outer[r]
	}
	sub, err := g.session.Sub(bootstrap.SubConfig{Name: c.Name, Key: splitKey(g.sub, g.splits, mine.color), Members: members, Parent: meeting})
	if err != nil {
		return nil, err
	}
	policy := g.family.spin(c.SpinFor, g.session.LocalRanks())
	transport, err := openWire(ctx, g.wire, &c, sub, show(sub), sub.Key(), policy)
	if err != nil {
		sub.Close()
		return nil, err
	}
	return newChild(g, c, sub, transport, policy), nil
}

// splitCause is what this rank tells the others when it could not open its part; the parts of a cause that has been
// told stay as they are.
func splitCause(rank int, name string, err error) *fabric.Cause {
	return &fabric.Cause{Kind: sentinelOf(err), Peer: rank, From: rank, Text: fmt.Sprintf("rank %d could not open its part of group %q: %v", rank, name, err), Err: err}
}

func splitError(c *Config, err error) error { return opError("split", c, err) }
