//go:build linux

package netns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// Flow asks for calls, small and large in turn, whose every byte is checked, until rank 0 is told to stop or one fails.
type Flow struct {
	Group int
	Seed  uint64
	Most  int  // bytes of a large call's block
	Fixed bool // all large ones have Most, and only every eighth is checked: for rates
}

// flow is the part of it that other calls see.
type flow struct {
	calls atomic.Int64
	stop  atomic.Bool
}

// Flow makes the calls.
func (w *Worker) Flow(o Flow, r *Fault) error {
	return w.with(o.Group, r, func(m *member) error { return m.flow.run(m.group.Host(), o) })
}

// Calls is how many rounds of Flow are done.
func (w *Worker) Calls(o Order, r *int64) error {
	m, err := w.find(o.Group)
	if err == nil {
		*r = m.flow.calls.Load()
	}
	return err
}

// Stop ends Flow on all ranks; it is for rank 0.
func (w *Worker) Stop(o Order, r *Fault) error {
	return w.with(o.Group, r, func(m *member) error {
		m.flow.stop.Store(true)
		return nil
	})
}

func (f *flow) run(c *fabric.Collective, o Flow) error {
	source := rand.New(rand.NewPCG(o.Seed, 2))
	small, heads := make([]byte, 16), make([]byte, 16*c.World())
	in, out := make([]byte, o.Most), make([]byte, o.Most*c.World())
	for i := uint64(0); ; i++ {
		binary.LittleEndian.PutUint64(small, i)
		small[8] = 0
		if f.stop.Load() {
			small[8] = 1
		}
		if err := c.AllGather(heads, small); err != nil {
			return err
		}
		for rank := range c.World() {
			if n := binary.LittleEndian.Uint64(heads[16*rank:]); n != i {
				return fmt.Errorf("%w: round %d of rank %d reached round %d", measure.ErrWrong, n, rank, i)
			}
		}
		if heads[8] == 1 {
			return nil
		}
		n := int(math.Exp2(source.Float64() * math.Log2(float64(o.Most))))
		if o.Fixed || source.IntN(4) == 0 {
			n = o.Most
		}
		err := error(nil)
		if o.Fixed && i%8 != 0 {
			err = c.AllGather(out[:n*c.World()], in[:n])
		} else {
			err = large(c, in[:n], out[:n*c.World()], i)
		}
		if err != nil {
			return err
		}
		f.calls.Add(1)
	}
}

// large gathers a block of every rank and compares all of it.
func large(c *fabric.Collective, in, out []byte, round uint64) error {
	fill(in, round, c.Rank())
	clear(out)
	if err := c.AllGather(out, in); err != nil {
		return err
	}
	n := len(in)
	for rank := range c.World() {
		fill(in, round, rank)
		if got := out[rank*n : (rank+1)*n]; !bytes.Equal(got, in) {
			at := 0
			for got[at] == in[at] {
				at++
			}
			return fmt.Errorf("%w: byte %d of %d from rank %d in round %d is %#02x, not %#02x", measure.ErrWrong, at, n, rank, round, got[at], in[at])
		}
	}
	return nil
}

// fill writes what no other place of any round holds: a chunk that lands elsewhere is seen.
func fill(b []byte, round uint64, rank int) {
	word := (round+1)*0x9e3779b97f4a7c15 ^ uint64(rank)<<56
	for len(b) >= 8 {
		word = word*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(b, word^word>>29)
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(word >> (8 * i))
	}
}

// running is a flow on all ranks.
type running struct {
	t     testing.TB
	ranks []*subject
	ended []chan error
}

// run starts the calls on all ranks.
func run(t testing.TB, ranks []*subject, seed uint64, most int) *running {
	t.Helper()
	r := begin(t, ranks, Flow{Seed: seed, Most: most})
	r.advance(3)
	return r
}

// begin is run with more to say, and does not wait.
func begin(t testing.TB, ranks []*subject, o Flow) *running {
	r := &running{t: t, ranks: ranks}
	for _, s := range ranks {
		ended := make(chan error, 1)
		r.ended = append(r.ended, ended)
		go func() {
			var f Fault
			mine := o
			mine.Group = s.group
			if err := s.worker.explain("Flow", s.worker.client.Call("Worker.Flow", mine, &f)); err != nil {
				ended <- err
				return
			}
			ended <- f.err()
		}()
	}
	return r
}

// calls is how many rounds a rank has done.
func (r *running) calls(rank int) (n int64) {
	r.t.Helper()
	s := r.ranks[rank]
	require.NoError(r.t, s.worker.ask("Calls", Order{Group: s.group}, &n))
	return n
}

// advance waits until every rank has done n rounds more.
func (r *running) advance(n int64) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for rank := range r.ranks {
		for first := r.calls(rank); r.calls(rank) < first+n; {
			select {
			case err := <-r.ended[rank]:
				require.FailNow(r.t, "the calls have ended", "rank %d: %v\n%s", rank, err, r.logs())
			case <-late.C:
				require.FailNow(r.t, "the calls do not go on", "rank %d has done %d rounds of %d in %v\n%s", rank, r.calls(rank)-first, n, patience, r.logs())
			case <-tick.C:
			}
		}
	}
}

// logs is what all ranks wrote.
func (r *running) logs() string {
	var text strings.Builder
	for _, s := range r.ranks {
		fmt.Fprintf(&text, "rank %d wrote:\n%s", s.rank, s.worker.stderr)
	}
	return text.String()
}

// stop ends the calls, which must have gone well.
func (r *running) stop() {
	r.t.Helper()
	require.NoError(r.t, r.ranks[0].worker.do("Stop", Order{Group: r.ranks[0].group}))
	for rank := range r.ranks {
		require.NoError(r.t, r.wait(rank), "rank %d\n%s", rank, r.logs())
	}
}

// wait gives what the calls of a rank ended with.
func (r *running) wait(rank int) error {
	r.t.Helper()
	select {
	case err := <-r.ended[rank]:
		return err
	case <-time.After(patience):
		require.FailNow(r.t, "a rank hangs", "rank %d\n%s", rank, r.logs())
		return nil
	}
}
