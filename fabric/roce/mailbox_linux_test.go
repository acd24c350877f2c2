package roce

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

var _ GPU = (*hipgo.Seam)(nil)

const mailRanks = 4

// mailRank is a rank with a software device, whose mailbox is before a stage over a wire in memory.
type mailRank struct {
	*fabric.StreamCollective
	path    *Mailbox
	d       *hipgo.Device
	s       hipgo.Stream
	copies  hipgo.Stream // the test's own
	mu      sync.Mutex   // one copy at a time
	room    *hipgo.HostBuffer
	memory  sync.Map // device pointer -> *hipgo.Buffer
	held    []*hipgo.HostBuffer
	arbiter *fabrictest.Arbiter
}

// mailGroup is what a test may change before the ranks open.
type mailGroup struct {
	w       *hiptest.World
	f       *verbstest.Fabric // nil: driver gives devices
	world   int
	c       Config
	gate    stage.Gate
	slot    int
	group   string
	timeout time.Duration
	driver  func(rank int) Driver // nil: the fabric's
	change  func(rank int, c *MailboxConfig)
}

func (g *mailGroup) open(t testing.TB) []*mailRank {
	t.Helper()
	ranks, errs := g.tryOpen(t)
	for r, err := range errs {
		require.NoError(t, err, "rank %d", r)
	}
	return ranks
}

func (g *mailGroup) tryOpen(t testing.TB) ([]*mailRank, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	net, arbiters, meshes := fabrictest.NewNetwork(g.world), fabrictest.Arbiters(g.world), newMeshes(g.world)
	ranks := make([]*mailRank, g.world)
	rests := make([]*stage.Transport, g.world)
	for r := range ranks {
		ranks[r] = newMailRank(t, g.w.Device(r))
		ranks[r].arbiter = arbiters[r]
		var err error
		rests[r], err = stage.Open(stage.Config{Transport: net.Transport(r), Driver: ranks[r].d.Seam(), Gate: g.gate, Image: mailbox.Image, Group: g.group,
			Timeout: g.timeout, Arbiter: arbiters[r], Yield: true, PartBytes: 64 << 10})
		require.NoError(t, err)
	}
	errs := onAll(g.world, func(r int) (err error) {
		c := MailboxConfig{RoCE: g.c, GPU: ranks[r].d.Seam(), Image: mailbox.Image, Rest: rests[r], SlotBytes: g.slot, Arbiter: arbiters[r]}
		c.RoCE.Group, c.RoCE.Timeout, c.RoCE.Yield = g.group, g.timeout, true
		c.RoCE.Logger = slog.New(slog.DiscardHandler)
		if g.change != nil {
			g.change(r, &c)
		}
		var d Driver
		if g.f != nil {
			d, c.RoCE.Addresses = g.f.Host(r).Library().Seam(), g.f.Host(r).Addresses
		}
		if g.driver != nil {
			d = g.driver(r)
		}
		ranks[r].path, err = OpenMailbox(ctx, meshes[r], d, c)
		return err
	})
	for r := range ranks {
		if errs[r] != nil {
			errs[r] = errors.Join(errs[r], rests[r].Close(), ranks[r].closeDevice())
			continue
		}
		ranks[r].StreamCollective = fabric.NewStream(ranks[r].path, fabric.Options{Group: g.group, Timeout: g.timeout, Arbiter: arbiters[r]})
		arbiters[r].OnCause(func() { _ = ranks[r].Check() })
	}
	return ranks, errs
}

func newMailRank(t testing.TB, d *hipgo.Device) *mailRank {
	t.Helper()
	r := &mailRank{d: d}
	var err error
	r.s, err = d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	r.copies, err = d.NewStreamCUMask(nil)
	require.NoError(t, err)
	r.room, err = d.HostMalloc(mailRoom)
	require.NoError(t, err)
	return r
}

const mailRoom = 1 << 20

func (r *mailRank) closeDevice() error {
	err := errors.Join(r.s.Close(), r.copies.Close(), r.room.Close())
	for _, word := range r.held {
		err = errors.Join(err, word.Close())
	}
	return err
}

func (r *mailRank) stream() fabric.Stream { return fabric.Stream(r.s.Raw()) }

func (r *mailRank) alloc(n int) (fabric.DevPtr, error) {
	b, err := r.d.Malloc(max(n, 1))
	if err != nil {
		return 0, err
	}
	r.memory.Store(fabric.DevPtr(b.Ptr()), b)
	return fabric.DevPtr(b.Ptr()), nil
}

func (r *mailRank) free(p fabric.DevPtr) error {
	b, ok := r.memory.LoadAndDelete(p)
	if !ok {
		return errors.New("freed twice")
	}
	return b.(*hipgo.Buffer).Close()
}

func (r *mailRank) move(n int, step func(off, n int) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for off := 0; off < n; off += mailRoom {
		if err := step(off, min(mailRoom, n-off)); err != nil {
			return err
		}
	}
	return nil
}

func (r *mailRank) copy(dst, src uintptr, n int) error {
	if err := r.copies.Copy(dst, src, n, hipgo.CopyDefault); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.copies.Synchronize(ctx)
}

func (r *mailRank) upload(dst fabric.DevPtr, src []byte) error {
	return r.move(len(src), func(off, n int) error {
		copy(r.room.Bytes(), src[off:][:n])
		return r.copy(uintptr(dst)+uintptr(off), r.room.Ptr(), n)
	})
}

func (r *mailRank) download(dst []byte, src fabric.DevPtr) error {
	return r.move(len(dst), func(off, n int) error {
		if err := r.copy(r.room.Ptr(), uintptr(src)+uintptr(off), n); err != nil {
			return err
		}
		copy(dst[off:][:n], r.room.Bytes())
		return nil
	})
}

func (r *mailRank) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return r.Wait(ctx, r.stream())
}

// done closes ranks and their devices.
func mailDone(t testing.TB, ranks []*mailRank) {
	t.Helper()
	for i, err := range onAll(len(ranks), func(r int) error { return ranks[r].Close() }) {
		assert.NoError(t, err, "rank %d", i)
	}
	for i, r := range ranks {
		r.memory.Range(func(p, _ any) bool { return assert.NoError(t, r.free(p.(fabric.DevPtr))) })
		assert.NoError(t, r.closeDevice(), "rank %d", i)
	}
}

func TestTwoRanksGatherByTheMailbox(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	f := inMemory(t, verbstest.Switch(2, 1))
	g := &mailGroup{w: w, f: f, world: 2, timeout: 10 * time.Second}
	ranks := g.open(t)
	const n, calls = 16, 200
	for r, err := range onAll(2, func(r int) error {
		m := ranks[r]
		in, err := m.alloc(n)
		if err != nil {
			return err
		}
		out, err := m.alloc(2 * n)
		if err != nil {
			return err
		}
		for i := range calls {
			if err := errors.Join(m.upload(in, noise(uint64(2*i+r), n)), m.AllGather(m.stream(), out, in, n), m.wait(t.Context())); err != nil {
				return err
			}
			got := make([]byte, 2*n)
			if err := m.download(got, out); err != nil {
				return err
			}
			assert.Equal(t, append(noise(uint64(2*i), n), noise(uint64(2*i+1), n)...), got, "call %d", i)
		}
		return nil
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	assert.Equal(t, uint64(calls), ranks[0].Stats().Calls)
	mailDone(t, ranks)
	assert.Zero(t, f.Left())
}
