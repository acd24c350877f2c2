package roce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// The steps' names, in votes; between the first two are survey's.
const (
	stepMailDevice     = "mailbox device"
	stepMailQueuePairs = "mailbox queue pairs"
	stepMailConnect    = "mailbox connections"
	stepMailLaunch     = "mailbox launch"
	stepMailProbe      = "mailbox probe"
)

// The kernels, in the order of Mailbox.kernels.
const (
	gatherKernel = iota
	allReduceKernel
	exchangeKernel
)

var kernelNames = [...]string{gatherKernel: "hf_gather", allReduceKernel: "hf_all_reduce", exchangeKernel: "hf_exchange"}

// OpenMailbox puts a mailbox before a path for device memory, c.Rest: calls that it can take go by it, all others by that one, and both are
// one fabric.StreamTransport. It needs a Mesh, as Open does and after it on the same one (a bootstrap.Session); the Driver that HCAs are reached
// by (verbs.Seam); and of c the device (hipgo.Device.Seam), its kernels (csrc/mailbox) and Rest, which was opened before with the same
// Group, Timeout and Arbiter. It makes queue pairs of its own and returns once a call has gone through the kernels of all ranks. All ranks call
// it, and it fails on all of them alike, with the reason of the rank where it did; then Rest is as before, and can be used without. Not while a
// stream of the device captures. Errors: ErrInvalid; ErrUnsupported for hosts that RoCE does not join, and for a device without
// kernels; ErrMismatch; what Mesh gives. In a world of 1 all calls are Rest's.
func OpenMailbox(ctx context.Context, mesh Mesh, d Driver, c MailboxConfig) (*Mailbox, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if w := mesh.World(); w < 1 || w > fabric.MaxWorld || w != c.Rest.World() || mesh.Rank() != c.Rest.Rank() {
		return nil, fabric.Invalidf("rank %d of world %d, and Rest is rank %d of %d; they must be the same, of 1 to %d ranks", mesh.Rank(), w, c.Rest.Rank(), c.Rest.World(), fabric.MaxWorld)
	}
	q := c.queuePairs()
	m := &Mailbox{c: q, mc: c, d: d, gpu: c.GPU, rest: c.Rest, rank: mesh.Rank(), world: mesh.World(), wires: newTransport(mesh, d, q),
		waits: make(chan struct{}, 1), args: make([]byte, callBytes), plans: map[uintptr]*mailPlan{}, settled: make(chan struct{})}
	m.hops = make([][]*mailHop, m.world)
	m.log.epoch = time.Now()
	m.proxy.open(m)
	if m.world > 1 {
		if err := m.bringUp(ctx, mesh); err != nil {
			return nil, errors.Join(err, m.abandon(err))
		}
	}
	m.failing.Lock()
	m.owns = true
	failed := m.failed.Load()
	m.failing.Unlock()
	if failed != nil {
		m.rest.Abort(failed)
	}
	return m, nil
}

// bringUp takes the steps, each ended by a vote.
func (m *Mailbox) bringUp(ctx context.Context, mesh Mesh) error {
	if err := vote(ctx, mesh, stepMailDevice, m.openDevice()); err != nil {
		return err
	}
	all, err := survey(ctx, mesh, m.d, m.c)
	if err != nil {
		return err
	}
	all, m.stripes = stripesOf(all)
	mine := ours(all, m.rank)
	if err := vote(ctx, mesh, stepMailQueuePairs, m.build(all, mine)); err != nil {
		return err
	}
	said, err := mesh.AllGather(ctx, m.encode(mine))
	if err != nil {
		return err
	}
	if err := vote(ctx, mesh, stepMailConnect, m.meet(all, mine, said)); err != nil {
		return err
	}
	m.proxy.start()
	if err := vote(ctx, mesh, stepMailLaunch, m.launchProbe()); err != nil {
		return err // where a rank has none no kernel is to wait for it
	}
	return vote(ctx, mesh, stepMailProbe, m.probe(ctx))
}

// openDevice loads the kernels and allocates what they share with the host.
func (m *Mailbox) openDevice() (err error) {
	g := m.gpu
	module, functions, err := g.Load(m.mc.Image, kernelNames[:]...)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) && !wrong(err) { // what is wrong is not the image
			return fmt.Errorf("loading the mailbox's kernels on %v: %w", g, err)
		}
		return fabric.Unsupportedf("the image of %d bytes has no mailbox for %v: %v; give one for it", len(m.mc.Image), g, err)
	}
	m.module = module
	copy(m.kernels[:], functions)
	m.clock = uint32(max(0, g.Clock()))
	bytes := lettersBytes(m.world, m.mc.SlotBytes)
	mem, device, err := g.AllocHost(bytes)
	if err != nil {
		return fmt.Errorf("%d bytes of pinned memory for the mailbox on %v: %w", bytes, g, err)
	}
	m.own.mem = mem
	if address(mem)%pageBytes != 0 || len(mem) < bytes {
		return fabric.Unsupportedf("%v gives pinned memory at %#x, which HCAs do not take: whole pages are needed", g, address(mem))
	}
	if m.own, err = newLetters(mem[:bytes], device, m.world, m.rank, m.mc.SlotBytes); err != nil {
		return err
	}
	if m.memory, err = g.AllocDevice(mailboxLen); err != nil {
		return fmt.Errorf("device memory for the mailbox on %v: %w", g, err)
	}
	if _, m.event, _, err = g.OpenStream(true); err != nil {
		return fmt.Errorf("an event for waits on %v: %w", g, err)
	}
	m.opened = true
	return m.openProbe()
}

// abandon takes down what did not come up.
func (m *Mailbox) abandon(err error) error {
	m.fail(fabric.CauseOf(err))
	return m.freeAll()
}
