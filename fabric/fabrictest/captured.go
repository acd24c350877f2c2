package fabrictest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// Graph is a captured part of a stream.
type Graph interface {
	Launch() error // queues it on the stream
	Close() error
}

// RunCapture holds a path that can be captured to what a graph of its calls must do: beside RunStream, over Subjects of
// Stream whose Device has Graph.
func RunCapture(t *testing.T, open Opener) {
	t.Run("all-captured", func(t *testing.T) { testCapture(t, open, -1) })
	t.Run("one-eager", func(t *testing.T) { testCapture(t, open, 1) })
}

const (
	graphs     = 3
	graphCalls = 188 // an engine's step of decoding: more than a ring, launched twice
	graphDeep  = 4   // launches with nothing waited for in between
)

// chain is a sequence of calls in whose memory every run of it shows: each all-reduce is in place.
type chain struct {
	s     *stream
	links []link
	graph Graph
	plan  *fabric.Plan
}

type link struct {
	call     Call
	buf, out Buffer // of int32; out is a gather's or a broadcast's
	first    []int32
}

// elements of a link: mostly few, now and then more than a small part.
func elements(i int) int { return [...]int{1, 4, 5, 300}[i%4] }

// newChain gives calls which differ by graph, in memory that rank fills with values of its own.
func newChain(s *stream, graph int) (*chain, error) {
	c := &chain{s: s}
	for i := range graphCalls {
		n := elements(i + graph)
		l := link{first: make([]int32, n)}
		for k := range l.first {
			l.first[k] = valueAt(graph, i, k, s.Rank())
		}
		var err error
		if l.buf, err = s.Alloc(4 * n); err != nil {
			return nil, err
		}
		if l.out, err = s.Alloc(4 * n * s.World()); err != nil {
			return nil, err
		}
		switch i % 3 {
		case 0:
			l.call = Call{Op: fabric.AllReduce, DType: fabric.I32, Reduce: fabric.Sum, In: l.buf, Out: l.buf}
		case 1:
			l.call = Call{Op: fabric.AllGather, In: l.buf, Out: l.out}
		default:
			l.call = Call{Op: fabric.Broadcast, Root: i / 3 % s.World(), Out: l.out.Slice(0, 4*n)}
			if l.call.Root == s.Rank() {
				l.call.In, l.call.Out = l.buf, nil
			}
		}
		c.links = append(c.links, l)
	}
	return c, c.reset()
}

func valueAt(graph, call, element, rank int) int32 {
	return int32(1 + graph + 7*call + 31*element + 101*rank)
}

// reset puts the first values back.
func (c *chain) reset() error {
	for _, l := range c.links {
		blank := make([]byte, l.out.Len())
		for i := range blank {
			blank[i] = guardByte
		}
		if err := errors.Join(c.s.Upload(l.buf, words(l.first)), c.s.Upload(l.out, blank)); err != nil {
			return err
		}
	}
	return nil
}

func words(v []int32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// queue makes every call once, or records it while the stream captures.
func (c *chain) queue() error {
	for i, l := range c.links {
		if err := c.s.Do(l.call); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// capture records the chain; the way of an engine.
func (c *chain) capture() (err error) {
	if c.plan, err = c.s.c.Capture(c.s.d.Stream); err != nil {
		return err
	}
	c.graph, err = c.s.d.Graph(c.queue)
	return errors.Join(err, c.plan.End())
}

// run makes the calls, by a graph where there is one.
func (c *chain) run() error {
	if c.graph == nil {
		return c.queue()
	}
	return c.graph.Launch()
}

// release gives back what capture took.
func (c *chain) release() error {
	if c.graph == nil {
		return nil
	}
	err := errors.Join(c.graph.Close(), c.plan.Release())
	c.graph, c.plan = nil, nil
	return err
}

// check says whether the memory is what so many runs make of it.
func (c *chain) check(graph, runs int) error {
	world := c.s.World()
	for i, l := range c.links {
		n := len(l.first)
		want := make([]int32, 0, n*world)
		from := l.buf
		switch l.call.Op {
		case fabric.AllReduce:
			for k := range n {
				sum := int32(0)
				for r := range world {
					sum += valueAt(graph, i, k, r)
				}
				for range runs - 1 {
					sum *= int32(world) // every rank has the same by now
				}
				want = append(want, sum)
			}
		case fabric.AllGather:
			from = l.out
			for r := range world {
				for k := range n {
					want = append(want, valueAt(graph, i, k, r))
				}
			}
		default:
			if l.call.Root == c.s.Rank() {
				continue
			}
			from = l.out.Slice(0, 4*n)
			for k := range n {
				want = append(want, valueAt(graph, i, k, l.call.Root))
			}
		}
		got := make([]byte, from.Len())
		if err := c.s.Download(got, from); err != nil {
			return err
		}
		if err := differ(fmt.Sprintf("graph %d, call %d, %v", graph, i, l.call.Op), got, words(want), 0, len(got)); err != nil {
			return err
		}
	}
	return nil
}

// testCapture launches graphs in turn, more calls deep than a ring has, with calls of no graph between them; captures one
// of them anew; and lets a rank that captures nothing make the same calls.
func testCapture(t *testing.T, open Opener, eager int) {
	for _, world := range []int{2, 3} {
		streams := openStreams(t, open, world, SubjectOptions{Group: "capture", Timeout: valuesTimeout})
		if streams[0].d.Graph == nil {
			t.Skip("streams of this device cannot be captured")
		}
		together(t, world, 5*time.Minute, func(rank int) error {
			s := streams[rank]
			var chains []*chain
			for g := range graphs {
				c, err := newChain(s, g)
				if err == nil && rank != eager {
					err = c.capture()
				}
				if err != nil {
					return fmt.Errorf("graph %d: %w", g, err)
				}
				chains = append(chains, c)
			}
			for round := range 2 {
				for range graphDeep {
					for _, c := range chains {
						if err := errors.Join(c.run(), s.Do(Call{Op: fabric.Barrier})); err != nil {
							return fmt.Errorf("round %d: %w", round, err)
						}
					}
				}
				if err := s.Sync(); err != nil {
					return err
				}
				for g, c := range chains {
					if err := errors.Join(c.check(g, graphDeep), c.reset()); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				anew := chains[round]
				err := anew.release()
				if err == nil && rank != eager {
					err = anew.capture()
				}
				if err != nil {
					return err
				}
			}
			if err := errors.Join(chains[0].run(), s.Sync()); err != nil {
				return err
			}
			err := chains[0].check(0, 1)
			for _, c := range chains {
				err = errors.Join(err, c.release())
			}
			return err
		})
	}
}
