//go:build cgo

package mailbox_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/csrc/mailbox/internal/adapters"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// call is struct hf_call.
type call struct {
	Mailbox, Region, In, Out, Bytes, SlotBytes, Timeout     uint64
	World, Rank, Target, Stripes, Dtype, Reduce, Tag, Clock uint32
}

// A member is a rank: its region, its device words, and what an engine would have.
type member struct {
	region, device, in, out []byte
}

// A group is its ranks, whose kernels run on threads of their own.
type group struct {
	adapters.Group
	world   int
	members []*member
}

func mapped(t *testing.T, n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// newGroup maps memory for so many ranks and calls of up to most bytes.
func newGroup(t *testing.T, world, stripes, most int) *group {
	slot := (most + 4095) / 4096 * 4096
	g := &group{world: world, Group: adapters.Group{SlotBytes: slot, Stripes: stripes, Broken: func(s string) { t.Error(s) }}}
	for range world {
		m := &member{mapped(t, adapters.RegionBytes(world, slot)), mapped(t, adapters.MailboxBytes), mapped(t, slot+64), mapped(t, world*slot+64)}
		g.members, g.Regions = append(g.members, m), append(g.Regions, m.region)
	}
	return g
}

// clear makes a group's memory as it was.
func (g *group) clear() {
	for _, m := range g.members {
		clear(m.region[:adapters.HeadBytes])
		clear(m.device)
	}
}

// call is what a rank's launch of a call of so many bytes has in common with all others.
func (g *group) call(rank, bytes int) call {
	m := g.members[rank]
	return call{
		Mailbox: address(m.device), Region: address(m.region), In: address(m.in), Out: address(m.out), Bytes: uint64(bytes), SlotBytes: uint64(g.SlotBytes),
		Timeout: uint64(20 * time.Second), World: uint32(g.world), Rank: uint32(rank), Target: uint32(rank), Stripes: uint32(g.Stripes),
	}
}

func launch(kernel func([]byte, int, int), c call, blocks, threads int) {
	b, err := binary.Append(nil, binary.NativeEndian, c)
	if err != nil {
		panic(err) // all its fields are numbers
	}
	kernel(b, blocks, threads)
}

// record is struct hf_record.
type record struct{ Failed, Target, Peer, Stripe, Seen, Awaited, Microseconds uint64 }

func (m *member) record() (r record) {
	for i, field := range []*uint64{&r.Failed, &r.Target, &r.Peer, &r.Stripe, &r.Seen, &r.Awaited, &r.Microseconds} {
		*field = adapters.Load(m.region, adapters.RecordAt+8*i)
	}
	return r
}

func (m *member) epoch(target int) uint64 {
	return adapters.Load(m.device, adapters.TargetsAt+target*adapters.TargetBytes)
}

// A step is a call that some ranks make together.
type step struct {
	op              fabric.Op
	pair            [2]int // of an exchange
	bytes           int
	dtype           fabric.DType
	reduce          fabric.ReduceOp
	shift           int // of addresses, another for each rank
	inPlace         bool
	blocks, threads int
	made            func(number, rank int) []byte // nil: any bytes
}

// takes says whether a rank takes part, and with which peer.
func (s step) takes(rank int) (target int, ok bool) {
	switch {
	case s.op != fabric.Exchange:
		return rank, true
	case rank == s.pair[0]:
		return s.pair[1], true
	default:
		return s.pair[0], rank == s.pair[1]
	}
}

// input is what a rank brings to the step of that number.
func (s step) input(number, rank int) []byte {
	if s.made != nil {
		return s.made(number, rank)
	}
	b := make([]byte, s.bytes)
	pattern(b, uint64(number*100+rank+1))
	return b
}

// results gives what each rank's output is to be; combine sums.
func (s step) results(number, world int, combine func(step, [][]byte) []byte) [][]byte {
	ins, outs := make([][]byte, world), make([][]byte, world)
	for r := range ins {
		ins[r] = s.input(number, r)
	}
	for r := range outs {
		switch s.op {
		case fabric.AllGather:
			outs[r] = bytes.Join(ins, nil)
		case fabric.Exchange:
			target, _ := s.takes(r)
			outs[r] = ins[target]
		default:
			if r == 0 {
				outs[r] = combine(s, ins)
			}
			outs[r] = outs[0]
		}
	}
	return outs
}

// play makes the steps, on all ranks at once, and says what was not as it is to be.
func (g *group) play(steps []step, combine func(step, [][]byte) []byte) error {
	results := make([][][]byte, len(steps))
	for i, s := range steps {
		results[i] = s.results(i, g.world, combine)
	}
	errs := make([]error, g.world)
	var running sync.WaitGroup
	for r := range g.world {
		running.Go(func() {
			for i, s := range steps {
				if errs[r] = g.step(r, i, s, results[i][r]); errs[r] != nil {
					for _, m := range g.members {
						adapters.Store(m.region, adapters.AbortAt, 1)
					}
					return
				}
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *group) step(rank, number int, s step, want []byte) error {
	target, ok := s.takes(rank)
	if !ok {
		return nil
	}
	m, c := g.members[rank], g.call(rank, s.bytes)
	c.Target, c.Dtype, c.Reduce, c.Tag = uint32(target), uint32(s.dtype), uint32(s.reduce), uint32(number&0xffff)
	in, out := m.in[(s.shift+rank)%17:], m.out[(s.shift*5+rank)%19:]
	if s.inPlace && s.op == fabric.AllGather {
		in = out[rank*s.bytes:]
	} else if s.inPlace && s.op == fabric.AllReduce {
		in = out
	}
	pattern(m.out, uint64(number+77))
	copy(in, s.input(number, rank))
	whole := bytes.Clone(m.out)
	copy(whole[len(m.out)-len(out):], want)
	c.In, c.Out = address(in), address(out)
	kernel := map[fabric.Op]func([]byte, int, int){fabric.AllGather: twin.Gather, fabric.AllReduce: twin.AllReduce, fabric.Exchange: twin.Exchange}[s.op]
	launch(kernel, c, s.blocks, s.threads)
	if r := m.record(); r.Failed != 0 {
		return fmt.Errorf("step %d %v, rank %d: failed: %+v", number, s.op, rank, r)
	}
	if i := differs(whole, m.out); i >= 0 {
		return fmt.Errorf("step %d %+v, rank %d: byte %d of the output is %x and not %x", number, s, rank, i-(len(m.out)-len(out)), m.out[i], whole[i])
	}
	return nil
}

// differs gives where two slices differ first, or -1.
func differs(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// hosts sums on as many ranks by the host's own all-reduce.
func hosts(t *testing.T, world int) func(step, [][]byte) []byte {
	groups := fabrictest.Groups(t, world)
	return func(s step, ins [][]byte) []byte {
		outs := make([][]byte, world)
		fabrictest.Each(t, groups, func(g *fabrictest.Group) error {
			outs[g.Rank()] = make([]byte, s.bytes)
			return g.Host.AllReduce(outs[g.Rank()], ins[g.Rank()], s.dtype, s.reduce)
		})
		return outs[0]
	}
}
