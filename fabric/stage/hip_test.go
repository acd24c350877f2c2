package stage_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	_ stage.Driver   = (*hipgo.Seam)(nil)
	_ stage.Launcher = (*hipgo.Seam)(nil)
)

// hip is one rank's software device: an engine's stream on it, and a way of its own to its memory.
type hip struct {
	w      *hiptest.World
	d      *hipgo.Device
	s      hipgo.Stream
	copies hipgo.Stream // the test's own
	mu     sync.Mutex   // one copy at a time
	room   *hipgo.HostBuffer
	memory sync.Map // device pointer -> *hipgo.Buffer
	held   []*hipgo.HostBuffer
}

const hipRoom = 1 << 20

func newHIP(t testing.TB, w *hiptest.World, ordinal int) *hip {
	t.Helper()
	h := &hip{w: w, d: w.Device(ordinal)}
	var err error
	h.s, err = h.d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	if h.copies, err = h.d.NewStreamCUMask(nil); errors.Is(err, errors.ErrUnsupported) {
		h.copies, err = h.d.NewStream(hipgo.StreamNonBlocking)
	}
	require.NoError(t, err)
	h.room, err = h.d.HostMalloc(hipRoom)
	require.NoError(t, err)
	return h
}

func (h *hip) close() error {
	err := errors.Join(h.s.Close(), h.copies.Close(), h.room.Close())
	for _, word := range h.held {
		err = errors.Join(err, word.Close())
	}
	return err
}

func (h *hip) alloc(n int) (fabric.DevPtr, error) {
	b, err := h.d.Malloc(n)
	if err != nil {
		return 0, err
	}
	h.memory.Store(fabric.DevPtr(b.Ptr()), b)
	return fabric.DevPtr(b.Ptr()), nil
}

func (h *hip) free(p fabric.DevPtr) error {
	b, ok := h.memory.LoadAndDelete(p)
	if !ok {
		return errors.New("freed twice")
	}
	return b.(*hipgo.Buffer).Close()
}

func (h *hip) move(n int, step func(off, n int) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for off := 0; off < n; off += hipRoom {
		if err := step(off, min(hipRoom, n-off)); err != nil {
			return err
		}
	}
	return nil
}

func (h *hip) copy(dst, src uintptr, n int) error {
	if err := h.copies.Copy(dst, src, n, hipgo.CopyDefault); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return h.copies.Synchronize(ctx)
}

func (h *hip) upload(dst fabric.DevPtr, src []byte) error {
	return h.move(len(src), func(off, n int) error {
		copy(h.room.Bytes(), src[off:][:n])
		return h.copy(uintptr(dst)+uintptr(off), h.room.Ptr(), n)
	})
}

func (h *hip) download(dst []byte, src fabric.DevPtr) error {
	return h.move(len(dst), func(off, n int) error {
		if err := h.copy(h.room.Ptr(), uintptr(src)+uintptr(off), n); err != nil {
			return err
		}
		copy(dst[off:][:n], h.room.Bytes())
		return nil
	})
}

// hold parks the stream on a word of the test's.
func (h *hip) hold() (func(), error) {
	word, err := h.d.HostMalloc(8)
	if err != nil {
		return nil, err
	}
	if err := h.s.WaitValue64(word.Words().Addr(0), 1, hipgo.ConditionGte, math.MaxUint64); err != nil {
		return nil, err
	}
	h.held = append(h.held, word) // the stream may be late to look
	return sync.OnceFunc(func() { word.Words().Store(0, 1) }), nil
}

func (h *hip) device(done func() error) fabrictest.Device {
	return fabrictest.Device{Stream: fabric.Stream(h.s.Raw()), Alloc: h.alloc, Free: h.free, Upload: h.upload, Download: h.download,
		Synchronize: h.s.Synchronize, Hold: h.hold, Graph: h.graphed, Close: done}
}

// hipRank is a rank of a group over software devices.
type hipRank struct {
	*fabric.StreamCollective
	*hip
	path *stage.Transport
}

// openHIP opens a group over the in-memory wire, a software device a rank. change may be nil; the caller closes.
func openHIP(t testing.TB, w *hiptest.World, world int, c stage.Config, change func(rank int, c *stage.Config)) []*hipRank {
	t.Helper()
	net, arbiters := fabrictest.NewNetwork(world), fabrictest.Arbiters(world)
	ranks := make([]*hipRank, world)
	for r := range ranks {
		h, mine := newHIP(t, w, r), c
		mine.Transport, mine.Driver, mine.Image, mine.Arbiter, mine.Yield = net.Transport(r), h.d.Seam(), mailbox.Image, arbiters[r], true
		if change != nil {
			change(r, &mine)
		}
		path, err := stage.Open(mine)
		require.NoError(t, err)
		all := fabric.NewStream(path, fabric.Options{Group: c.Group, Timeout: c.Timeout, Arbiter: mine.Arbiter})
		arbiters[r].OnCause(func() { _ = all.Check() })
		ranks[r] = &hipRank{all, h, path}
	}
	return ranks
}

func (r *hipRank) stream() fabric.Stream { return fabric.Stream(r.s.Raw()) }

// done closes ranks and their devices.
func done(t testing.TB, ranks []*hipRank) {
	for i, r := range ranks {
		assert.NoError(t, r.Close(), "rank %d", i)
		r.memory.Range(func(p, _ any) bool { return assert.NoError(t, r.free(p.(fabric.DevPtr))) })
		assert.NoError(t, r.close(), "rank %d", i)
	}
}

const hipRanks = 5

// hard is all at once that a device may be like and the usual one is not.
var hard = hiptest.Settings{HIP: "5.7.31921", SDMARings: 1, BlitBytes: -1, CopyBlocks: true, StreamLock: true, HostReleases: true, Dirty: true,
	IgnorePriority: true}

func hipOpener(t *testing.T, s hiptest.Settings, gate stage.Gate, partBytes int) fabrictest.Opener {
	s.Devices = hipRanks
	w := hiptest.Start(t, s)
	return func(t *testing.T, world int, o fabrictest.SubjectOptions) []fabrictest.Subject {
		partBytes := partBytes
		if !small(o.Group) {
			partBytes = max(partBytes, 64<<10)
		}
		ranks := openHIP(t, w, world, stage.Config{Gate: gate, PartBytes: partBytes, Group: o.Group, Timeout: o.Timeout}, nil)
		subjects := make([]fabrictest.Subject, world)
		for r := range subjects {
			subjects[r] = fabrictest.Stream(ranks[r].StreamCollective, ranks[r].device(ranks[r].close))
		}
		return subjects
	}
}

func TestContractOfWordsOnHIP(t *testing.T) {
	contract(t, hipOpener(t, hiptest.Settings{}, stage.Words, stage.DefaultPartBytes))
}

func TestContractOfWordsOnHIPInParts(t *testing.T) {
	notUnderRace(t)
	contract(t, hipOpener(t, hiptest.Settings{}, stage.Words, 64))
}

func TestContractOfWordsOnHardHIP(t *testing.T) {
	notUnderRace(t)
	s := hard
	s.HIP = "6.2.41134"
	contract(t, hipOpener(t, s, stage.Words, 1024))
}

func TestContractOfKernelsOnHardHIP(t *testing.T) {
	notUnderRace(t)
	contract(t, hipOpener(t, hard, stage.Kernels, stage.DefaultPartBytes))
}

func TestContractOfKernelsOnHIPInParts(t *testing.T) {
	contract(t, hipOpener(t, hiptest.Settings{}, stage.Kernels, 64))
}
