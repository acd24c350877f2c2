package stage

import (
	"os"

	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// sets is how many parts are under way at once: one comes down, one is on the wire, one goes up. Of the kernels gate, whose
// windows are two, the last is not used.
const sets = 3

// lineBytes keeps slabs apart.
const lineBytes = 64

// slabs are the pinned memory that parts are staged in: one block, allocated at open.
type slabs struct {
	mem        []byte
	device     uintptr
	in, out    int // bytes of each set's
	vectorSize int
}

func newSlabs(d Driver, world, partBytes int) (slabs, error) {
	in, out := plan.SlabBytes(world, partBytes)
	s := slabs{in: lines(in), out: lines(out), vectorSize: lines(4 * world)}
	var err error
	s.mem, s.device, err = d.AllocHost(pages(sets * (s.vectorSize + s.in + s.out)))
	return s, err
}

// pages rounds up to what a wire can be lent.
func pages(n int) int { return (n + os.Getpagesize() - 1) / os.Getpagesize() * os.Getpagesize() }

// lender is a wire that moves memory in place once it is lent to it, whole pages, until it is released or the wire closed.
type lender interface {
	Lend(mem []byte) (release func() error, err error)
}

// lend has the wire move memory in place, where it can; else it copies, and the log says why.
func (t *Transport) lend(what string, mem []byte) (release func() error) {
	l, ok := t.wire.(lender)
	if !ok {
		return func() error { return nil }
	}
	release, err := l.Lend(mem)
	if err != nil {
		t.c.Logger.Warn("the wire copies memory that it could not be lent", "group", t.c.Group, "what", what, "bytes", len(mem), "err", err)
		return func() error { return nil }
	}
	return release
}

func lines(n int) int { return (n + lineBytes - 1) / lineBytes * lineBytes }

// place is a piece of the block and where the device has it.
type place struct {
	mem    []byte
	device uintptr
}

func (s *slabs) at(off, n int) place { return place{s.mem[off:][:n:n], s.device + uintptr(off)} }

// input and output are a set's slabs, all sets' inputs first.
func (s *slabs) input(set int) place  { return s.at(set*s.pitch(), s.in) }
func (s *slabs) output(set int) place { return s.at(sets*s.pitch()+set*s.out, s.out) }

// vector is where the lengths of a set's AllGatherVDevice come down, behind its input.
func (s *slabs) vector(set int) place { return s.at(set*s.pitch()+s.in, s.vectorSize) }

// pitch is from one set's input to the next's.
func (s *slabs) pitch() int { return s.in + s.vectorSize }
