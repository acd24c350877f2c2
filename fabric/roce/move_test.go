package roce

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// group is a transport's ranks with their faces.
type group struct {
	f     *verbstest.Fabric
	ranks []*Transport
	faces []*fabric.Collective
}

func newGroup(t testing.TB, topology verbstest.Topology, world int, c Config) *group {
	t.Helper()
	g := &group{f: inMemory(t, topology)}
	c.Yield = true
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	g.ranks = open(t, g.f, world, c)
	for _, tr := range g.ranks {
		g.faces = append(g.faces, fabric.New(tr, fabric.Options{Group: c.Group, Timeout: c.Timeout}))
	}
	return g
}

// each lets all ranks do the same at once.
func (g *group) each(t testing.TB, fn func(rank int, c *fabric.Collective) error) {
	t.Helper()
	for r, err := range onAll(len(g.faces), func(r int) error { return fn(r, g.faces[r]) }) {
		require.NoError(t, err, "rank %d", r)
	}
}

func (g *group) close(t testing.TB) {
	t.Helper()
	for r, err := range onAll(len(g.ranks), func(r int) error { return g.ranks[r].Close() }) {
		assert.NoError(t, err, "rank %d", r)
	}
	assert.Zero(t, g.f.Left())
}

func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// What lies in Alloc's memory moves without a copy, what does not through slots: at either end, in any mix.
func TestLargeCallsMoveFromAnyMemoryToAny(t *testing.T) {
	for name, f := range map[string]func(*verbstest.Fabric){"in order": nil, "out of order": func(f *verbstest.Fabric) { f.OutOfOrder(true) }} {
		for _, rails := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d rails", name, rails), func(t *testing.T) {
				g := &group{f: inMemory(t, verbstest.Switch(2, rails))}
				if f != nil {
					f(g.f)
				}
				c := Config{SlotBytes: 4096, EagerBytes: 1024, Yield: true, Timeout: 10 * time.Second}
				g.ranks = open(t, g.f, 2, c)
				for _, tr := range g.ranks {
					g.faces = append(g.faces, fabric.New(tr, fabric.Options{Timeout: c.Timeout}))
				}
				const most = 300_000
				var ours [2][2]fabric.Memory
				g.each(t, func(r int, c *fabric.Collective) (err error) {
					for i := range 2 {
						if ours[r][i], err = c.Alloc(most); err != nil {
							return err
						}
					}
					return nil
				})
				for i, n := range []int{1025, 4096, 4097, 50_000, most} {
					for mix := range 16 {
						g.each(t, func(r int, c *fabric.Collective) error {
							out, in := make([]byte, n), noise(uint64(i*16+mix+r), n)
							if mix>>(2*r)&1 != 0 {
								out = ours[r][0].Bytes()[:n]
								clear(out)
							}
							if mix>>(2*r)&2 != 0 {
								in = ours[r][1].Bytes()[:n]
								copy(in, noise(uint64(i*16+mix+r), n))
							}
							if err := c.Exchange(out, in, 1-r); err != nil {
								return err
							}
							if !bytes.Equal(out, noise(uint64(i*16+mix+1-r), n)) {
								return fmt.Errorf("%d bytes, mix %d: what came is not what was sent", n, mix)
							}
							return nil
						})
					}
				}
				g.each(t, func(r int, _ *fabric.Collective) error { return ours[r][0].Close() })
				g.close(t) // with memory that is not closed
			})
		}
	}
}

func TestSumsLandInMemoryOfOurs(t *testing.T) {
	g := newGroup(t, verbstest.Switch(3, 2), 3, Config{SlotBytes: 4096, EagerBytes: 1024})
	const n = 40_000
	for _, ours := range []bool{false, true} {
		g.each(t, func(r int, c *fabric.Collective) error {
			v := make([]float32, n)
			b := fabric.Bytes(v)
			if ours {
				m, err := c.Alloc(len(b))
				if err != nil {
					return err
				}
				defer m.Close()
				b = m.Bytes()
			}
			in := make([]float32, n)
			for i := range in {
				in[i] = float32(i%100 + r)
			}
			copy(b, fabric.Bytes(in))
			if err := c.AllReduce(b, b, fabric.F32, fabric.Sum); err != nil {
				return err
			}
			want := make([]float32, n)
			for i := range want {
				want[i] = float32(3*(i%100) + 3)
			}
			if !bytes.Equal(b, fabric.Bytes(want)) {
				return fmt.Errorf("ours %v: a wrong sum", ours)
			}
			return nil
		})
	}
	g.close(t)
}

func TestARingOfFourRelays(t *testing.T) {
	g := newGroup(t, verbstest.Ring(4), 4, Config{SlotBytes: 4096, EagerBytes: 1024})
	require.NotNil(t, g.ranks[0].relays)
	for round := range 20 {
		for _, n := range []int{0, 1, 1000, 30_000} {
			g.each(t, func(r int, c *fabric.Collective) error {
				out := make([]byte, n)
				if err := c.Exchange(out, noise(uint64(round+r), n), (r+2)%4); err != nil {
					return err
				}
				if !bytes.Equal(out, noise(uint64(round+(r+2)%4), n)) {
					return fmt.Errorf("%d bytes: what came from the opposite rank is not what it sent", n)
				}
				return nil
			})
		}
	}
	g.close(t)
}

// The opposite ranks talk while those between are in no call.
func TestARelayNeedsNoCallOfItsRank(t *testing.T) {
	g := newGroup(t, verbstest.Ring(4), 4, Config{})
	errs := onAll(4, func(r int) error {
		if r%2 == 1 {
			return nil
		}
		for range 100 {
			if err := g.faces[r].Exchange(make([]byte, 5000), make([]byte, 5000), 2-r); err != nil {
				return err
			}
		}
		return nil
	})
	require.Equal(t, make([]error, 4), errs)
	g.close(t)
}

func TestASlotIsUsedAgainManyTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{Slots: MinSlots})
	const rounds = 1<<16 + 10
	g.each(t, func(r int, c *fabric.Collective) error {
		in, out := make([]byte, 8), make([]byte, 16)
		for n := range rounds {
			in[0], in[1], in[2], in[3] = byte(n), byte(n>>8), byte(n>>16), byte(r)
			if err := c.AllGather(out, in); err != nil {
				return err
			}
			if out[0] != byte(n) || out[1] != byte(n>>8) || out[2] != byte(n>>16) || out[8+3] != 1 || out[8] != byte(n) {
				return fmt.Errorf("call %d gave %v", n, out)
			}
		}
		return nil
	})
	g.close(t)
}

func TestACallAllocatesNothing(t *testing.T) {
	ranks := openCopying(t)
	for _, n := range []int{0, 16, 200_000} {
		errs := onAll(2, func(r int) error {
			c := fabric.New(ranks[r], fabric.Options{Timeout: 10 * time.Second})
			in, out := make([]byte, n), make([]byte, 2*n)
			var err error
			allocs := testing.AllocsPerRun(200, func() {
				if e := c.AllGather(out, in); e != nil {
					err = e
				}
			})
			if err == nil && allocs >= 1 {
				err = fmt.Errorf("%v allocations a call of %d bytes", allocs, n)
			}
			return err
		})
		require.Equal(t, make([]error, 2), errs)
	}
}

func TestAThousandOpensLeaveNothing(t *testing.T) {
	f := inMemory(t, verbstest.Switch(2, 2))
	for range 250 {
		ranks := open(t, f, 2, Config{Yield: true, SlotBytes: 64, EagerBytes: 64})
		for _, tr := range ranks {
			require.NoError(t, tr.Close())
		}
	}
	assert.Zero(t, f.Left())
}
