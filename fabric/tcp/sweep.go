package tcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/flow"
)

const (
	sweepLanes  = 8
	sweepRounds = 3
	sweepFirst  = 256 << 10 // bytes to each peer, to learn how many suit the network
	sweepTotal  = 16 << 20  // the most bytes from a rank in a round
	sweepTime   = 20 * time.Millisecond
	// worthMore is how much of the time another number of lanes must save to be taken.
	worthMore = 0.05
)

// LaneCache remembers what LanesAuto has measured. Its methods are called by Open only.
type LaneCache interface {
	Load(key string) (lanes int, ok bool)
	Store(key string, lanes int) error
}

// sweep says how many lanes move bytes fastest, the same number on every rank: what all ranks remember of an earlier time,
// else by trying on connections that it closes again.
func (t *Transport) sweep(ctx context.Context, m Mesh) (lanes int, err error) {
	key := t.sweepKey(m)
	remembered := 0
	if t.c.LaneCache != nil {
		if n, ok := t.c.LaneCache.Load(key); ok && n >= 1 && n <= sweepLanes {
			remembered = n
		}
	}
	known, err := agreeMin(ctx, m, uint64(remembered))
	if err != nil {
		return 0, err
	}
	if known > 0 {
		t.c.Logger.Info("lanes were measured", "lanes", known, "times", "remembered")
		return int(known), nil
	}
	if err := t.connect(ctx, m, sweepLanes, 0); err != nil {
		return 0, err
	}
	times, err := t.sweepTimes(ctx, m)
	if err != nil {
		return 0, err
	}
	t.disconnect()
	lanes = choose(times)
	t.c.Logger.Info("lanes were measured", "lanes", lanes, "times", fmt.Sprint(times))
	if t.c.LaneCache != nil {
		if err := t.c.LaneCache.Store(key, lanes); err != nil {
			t.c.Logger.Warn("what was measured is not remembered", "err", err)
		}
	}
	return lanes, nil
}

// disconnect closes what was opened, and forgets it. All ranks have agreed on the times, so that none is in a call.
func (t *Transport) disconnect() {
	for r := range t.peers {
		for _, l := range t.peers[r].lanes {
			if l.conn != nil {
				t.group.Drop(l.conn)
			}
		}
		t.peers[r] = peer{c: &t.c, Flow: flow.Flow{Peer: r}}
	}
	t.call.laid, t.call.active, t.mend = t.call.laid[:0], t.call.active[:0], nil
}

// laneTime is how long the slowest rank took with so many lanes.
type laneTime struct {
	lanes int
	took  time.Duration
}

func (l laneTime) String() string {
	return fmt.Sprintf("%d: %v", l.lanes, l.took.Round(time.Microsecond))
}

// sweepTimes moves bytes between all ranks with 1, 2, 4 and 8 lanes.
func (t *Transport) sweepTimes(ctx context.Context, m Mesh) ([]laneTime, error) {
	most := max(sweepTotal/max(t.world-1, 1), sweepFirst)
	in, out := make([]byte, most), make([]byte, most*t.world)
	measure := func(n int) (time.Duration, error) {
		best := time.Duration(0)
		for range sweepRounds {
			began := time.Now()
			if err := t.internal(ctx, &fabric.Call{Op: fabric.AllGather, In: in[:n], Out: out[:n*t.world], Numbered: fabric.Numbered{Class: fabric.Group, Bytes: n}}); err != nil {
				return 0, err
			}
			if took := time.Since(began); best == 0 || took < best {
				best = took
			}
		}
		slowest, err := agreeMax(ctx, m, uint64(best))
		return time.Duration(slowest), err
	}
	all := t.allLanes()
	t.useLanes(all, 1)
	first, err := measure(sweepFirst)
	if err != nil {
		return nil, err
	}
	n := int(min(max(float64(sweepFirst)*float64(sweepTime)/float64(max(first, 1)), sweepFirst), float64(most)))
	var times []laneTime
	for lanes := 1; lanes <= sweepLanes; lanes *= 2 {
		t.useLanes(all, lanes)
		took, err := measure(n)
		if err != nil {
			return nil, err
		}
		times = append(times, laneTime{lanes, took})
	}
	return times, nil
}

// choose takes the fewest lanes that are about as fast as the fastest.
func choose(times []laneTime) int {
	best := slices.MinFunc(times, func(a, b laneTime) int { return int(a.took - b.took) })
	for _, l := range times {
		if float64(l.took)*(1-worthMore) <= float64(best.took) {
			return l.lanes
		}
	}
	return best.lanes
}

// internal runs a call of the transport's own, that all ranks make.
func (t *Transport) internal(ctx context.Context, c *fabric.Call) error {
	p, err := t.Begin(c)
	if err != nil {
		return err
	}
	idle := time.Duration(-1)
	if deadline, ok := ctx.Deadline(); ok {
		idle = max(time.Until(deadline), 0)
	}
	defer context.AfterFunc(ctx, func() { t.Abort(ctx.Err()) })()
	return p.Wait(idle)
}

func (t *Transport) allLanes() [][]*lane {
	all := make([][]*lane, t.world)
	for r := range t.peers {
		all[r] = t.peers[r].lanes
	}
	return all
}

// useLanes makes every pair use the first n of its lanes, at least one a rail.
func (t *Transport) useLanes(all [][]*lane, n int) {
	for r := range t.peers {
		f := &t.peers[r]
		f.lanes = all[r][:min(max(n, len(f.rails)), len(all[r]))]
		f.up = 0
		for _, l := range f.lanes {
			if l.conn != nil {
				f.up++
			}
		}
		f.wide = len(f.lanes) > 1
	}
}

// sweepKey names the network that was measured.
func (t *Transport) sweepKey(m Mesh) string {
	var parts []string
	for r := range t.world {
		if r == t.rank {
			continue
		}
		for _, rail := range m.Rails(r) {
			parts = append(parts, rail.String())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func agreeMax(ctx context.Context, m Mesh, mine uint64) (uint64, error) {
	return agree(ctx, m, mine, slices.Max[[]uint64])
}
func agreeMin(ctx context.Context, m Mesh, mine uint64) (uint64, error) {
	return agree(ctx, m, mine, slices.Min[[]uint64])
}

func agree(ctx context.Context, m Mesh, mine uint64, pick func([]uint64) uint64) (uint64, error) {
	all, err := m.AllGather(ctx, binary.LittleEndian.AppendUint64(nil, mine))
	if err != nil {
		return 0, err
	}
	values := make([]uint64, len(all))
	for r, b := range all {
		if len(b) != 8 {
			return 0, &fabric.Cause{Kind: fabric.ErrMismatch, Peer: r, From: -1, Text: fmt.Sprintf("rank %d measures no lanes, and this rank does", r)}
		}
		values[r] = binary.LittleEndian.Uint64(b)
	}
	return pick(values), nil
}
