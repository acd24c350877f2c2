package roce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// mailWorld opens a group on a switch of one rail.
func mailWorld(t *testing.T, world int, change func(g *mailGroup)) (*mailGroup, []*mailRank) {
	t.Helper()
	g := &mailGroup{w: hiptest.Start(t, hiptest.Settings{Devices: world}), f: inMemory(t, verbstest.Switch(world, 1)), world: world, slot: 8192,
		timeout: 10 * time.Second, c: Config{PacketTimeout: 8 * time.Millisecond, Retries: 1}}
	if change != nil {
		change(g)
	}
	ranks := g.open(t)
	t.Cleanup(func() {
		mailDone(t, ranks)
		assert.Zero(t, g.f.Left())
	})
	return g, ranks
}

// gather queues one of so many bytes, in memory of the test's.
func (r *mailRank) gather(t *testing.T, n int) error {
	return r.AllGather(r.stream(), fabric.DevPtr(r.host(t, n*r.World()).Ptr()), fabric.DevPtr(r.host(t, n).Ptr()), n)
}

// reach returns once a rank's kernel has rung for a call of a target.
func (r *mailRank) reach(target int, epoch uint64) {
	for r.path.own.bell(target, bellEpoch) < epoch {
		runtime.Gosched()
	}
}

// stays fails the test unless the rank's stream is past all of its kernels, and a further call is refused with the same kind.
func (r *mailRank) ended(t *testing.T, kind error) {
	t.Helper()
	require.NoError(t, r.s.Synchronize(t.Context()), "no stream is parked")
	require.ErrorIs(t, r.gather(t, 16), kind)
}

func TestAMailboxWaitThatEndsNamesRankStripeHCAAndCall(t *testing.T) {
	g, ranks := mailWorld(t, 2, func(g *mailGroup) { g.timeout, g.c.Stripes = 300*time.Millisecond, 2 })
	for range 3 {
		errs := onAll(2, func(r int) error { return errors.Join(ranks[r].gather(t, 32), ranks[r].wait(t.Context())) })
		require.NoError(t, errors.Join(errs...))
	}
	require.NoError(t, ranks[0].gather(t, 48))
	err := ranks[0].wait(t.Context())
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, uint64(4), op.Seq)
	assert.Equal(t, "all-gather", op.Op)
	assert.Equal(t, 1, op.Peer)
	assert.ErrorContains(t, err, "rank 0 has waited 3")
	assert.ErrorContains(t, err, "for rank 1 in all-gather seq 4, 48 bytes: stripe 0, by "+g.f.Host(0).HCA(0).Name()+":1 to "+g.f.Host(1).HCA(0).Name()+":1 of rank 1, has brought seq 2 last")
	for _, r := range ranks {
		r.ended(t, fabric.ErrTimeout)
	}
}

func TestAbortEndsAMailboxWaitAndPoisons(t *testing.T) {
	_, ranks := mailWorld(t, 3, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	for _, r := range ranks[:2] {
		for range 4 {
			require.NoError(t, r.gather(t, 100))
		}
		r.reach(r.Rank(), 2)
	}
	waits := make(chan error, 1)
	go func() { waits <- ranks[0].wait(t.Context()) }()
	ranks[2].Abort(errors.New("enough"))
	require.ErrorIs(t, <-waits, fabric.ErrAborted)
	for _, r := range ranks {
		err := r.wait(t.Context())
		require.ErrorIs(t, err, fabric.ErrAborted)
		assert.ErrorContains(t, err, "enough")
		r.ended(t, fabric.ErrAborted)
	}
	for _, r := range ranks[:2] {
		assert.Equal(t, uint64(2), r.path.own.bell(r.Rank(), bellEpoch), "the launches behind it did nothing")
		assert.Equal(t, uint64(1), r.path.own.bell(r.Rank(), bellEnded), "nothing but the probe has ended")
	}
	ranks[1].Abort(errors.New("too late"))
	assert.ErrorContains(t, ranks[1].Check(), "enough", "the first cause stays")
}

func TestRanksInDifferentMailboxCallsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		calls [2]func(m *mailRank) error
		says  [2]string
	}{
		"bytes": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.gather(t, 48) },
			func(m *mailRank) error { return m.gather(t, 52) },
		}, [2]string{"all-gather seq 1, 48 bytes", "all-gather seq 1, 52 bytes"}},
		"far bytes": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.gather(t, 48) },
			func(m *mailRank) error { return m.gather(t, 48+4096+16384) },
		}, [2]string{"all-gather seq 1, 48 bytes", "all-gather seq 1, 20528 bytes"}},
		"operation": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.gather(t, 48) },
			func(m *mailRank) error { return m.sum(t, 12, fabric.F32, fabric.Sum) },
		}, [2]string{"all-gather seq 1, 48 bytes", "all-reduce (sum of f32) seq 1, 48 bytes"}},
		"reduction": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.sum(t, 12, fabric.F32, fabric.Max) },
			func(m *mailRank) error { return m.sum(t, 24, fabric.BF16, fabric.Max) },
		}, [2]string{"all-reduce (max of f32) seq 1, 48 bytes", "all-reduce (max of bf16) seq 1, 48 bytes"}},
		"target": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.gather(t, 48) },
			func(m *mailRank) error { return m.swap(t, 20, 0) },
		}, [2]string{"all-gather seq 1, 48 bytes", "exchange seq 1, 20 bytes"}},
		"path": {[2]func(m *mailRank) error{
			func(m *mailRank) error { return m.swap(t, 48, 1) },
			func(m *mailRank) error { return m.Barrier(m.stream()) },
		}, [2]string{"exchange seq 1, 48 bytes", "barrier seq 1, 0 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, ranks := mailWorld(t, 2, nil)
			for r, err := range onAll(2, func(r int) error {
				if err := c.calls[r](ranks[r]); err != nil {
					return err
				}
				return ranks[r].wait(t.Context())
			}) {
				require.ErrorIs(t, err, fabric.ErrDesync, "rank %d", r)
				for who, says := range c.says {
					assert.ErrorContains(t, err, says, "rank %d", r)
					assert.ErrorContains(t, err, fmt.Sprintf("rank %d is in", who), "rank %d", r)
				}
				ranks[r].ended(t, fabric.ErrDesync)
			}
		})
	}
}

func (r *mailRank) sum(t *testing.T, count int, dt fabric.DType, op fabric.ReduceOp) error {
	n := count * dt.Size()
	return r.AllReduce(r.stream(), fabric.DevPtr(r.host(t, n).Ptr()), fabric.DevPtr(r.host(t, n).Ptr()), count, dt, op)
}

func (r *mailRank) swap(t *testing.T, n, peer int) error {
	return r.Exchange(r.stream(), fabric.DevPtr(r.host(t, n).Ptr()), fabric.DevPtr(r.host(t, n).Ptr()), n, peer)
}

// A rank that is late in another call, which all make first, is no desync: whatever notes it gets.
func TestARankThatIsLateIsInNoOtherCall(t *testing.T) {
	_, ranks := mailWorld(t, 2, nil)
	for r, err := range onAll(2, func(r int) error {
		m := ranks[r]
		return errors.Join(m.Barrier(m.stream()), m.gather(t, 16), m.swap(t, 16, 1-r), m.wait(t.Context()))
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	late, err := ranks[1].hold()
	require.NoError(t, err)
	in, out := [2]fabric.DevPtr{}, [2]fabric.DevPtr{}
	for r, m := range ranks {
		in[r], out[r] = fabric.DevPtr(m.host(t, 64).Ptr()), fabric.DevPtr(m.host(t, 64).Ptr())
	}
	for range 3 {
		require.NoError(t, ranks[0].Send(ranks[0].stream(), in[0], 64, 1))
		require.NoError(t, ranks[1].Recv(ranks[1].stream(), out[1], 64, 0))
	}
	for _, m := range ranks {
		require.NoError(t, m.swap(t, 16, 1-m.Rank()))
		require.NoError(t, m.gather(t, 16))
	}
	h := ranks[1].path.hops[0][0]
	for h.share.flag(0) < 3 {
		require.NoError(t, ranks[1].Check())
		runtime.Gosched()
	}
	late()
	for _, m := range ranks {
		require.NoError(t, m.wait(t.Context()))
	}
	m := ranks[1].path // which has begun two exchanges and three calls of the group
	assert.NoError(t, m.contradicts(0, &note{noteClass: classPair, noteFlag: 1<<flagShift | 2, noteGroup: 2, noteRest: 1, noteSwaps: 3}), "it has begun that")
	assert.NoError(t, m.contradicts(0, &note{noteClass: classPair, noteFlag: 1<<flagShift | 3, noteGroup: 3, noteRest: 1, noteSwaps: 3}), "it is late")
	for _, n := range []note{{noteGroup: 2, noteRest: 1, noteSwaps: 3}, {noteGroup: 3, noteRest: 0, noteSwaps: 3}, {noteGroup: 3, noteRest: 1, noteSwaps: 2}} {
		n[noteClass], n[noteFlag] = classPair, uint64(tagOf(1, 16))<<flagShift|3
		assert.ErrorIs(t, m.contradicts(0, &n), fabric.ErrDesync)
	}
}

// A kernel that gives up ends the group, though nobody waits for its stream.
func TestAKernelThatGivesUpIsSeenByItsProxy(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) { g.timeout = 50 * time.Millisecond })
	require.NoError(t, ranks[0].gather(t, 16))
	require.Eventually(t, func() bool { return ranks[1].Check() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, ranks[1].Check(), fabric.ErrTimeout)
}

// untilItFails makes calls, of the first of which a rank may have had all that it needs.
func untilItFails(t *testing.T, m *mailRank) error {
	for {
		if err := errors.Join(m.gather(t, 16), m.wait(t.Context())); err != nil {
			return err
		}
	}
}

func TestWhatFailsUnderTheMailboxIsNamed(t *testing.T) {
	for name, harm := range map[string]func(g *mailGroup){
		"port down":    func(g *mailGroup) { g.f.Host(0).HCA(0).Link(false) },
		"fatal device": func(g *mailGroup) { g.f.Host(0).HCA(0).Fatal() },
		"cut":          func(g *mailGroup) { g.f.Cut(0, 1) },
		"mute":         func(g *mailGroup) { g.f.Host(1).HCA(0).Mute(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g, ranks := mailWorld(t, 3, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
			harm(g)
			causes := make([]string, 3)
			for r, err := range onAll(3, func(r int) error { return untilItFails(t, ranks[r]) }) {
				require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
				causes[r] = fabric.CauseOf(err).Text
				ranks[r].ended(t, fabric.ErrPeerFailed)
			}
			assert.Equal(t, []string{causes[0], causes[0], causes[0]}, causes)
			assert.Contains(t, causes[0], g.f.Host(0).HCA(0).Name()+":1 to ", "it names the rail")
		})
	}
}

// An arbiter that none hears, as when its process is gone: the others find out by their queue pairs.
func TestAMailboxRankThatIsKilledIsNamed(t *testing.T) {
	g, ranks := mailWorld(t, 3, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	ranks[2].arbiter.Leave(errors.New("killed"))
	g.f.Cut(0, 2)
	g.f.Cut(1, 2)
	ranks[2].Abort(errors.New("killed"))
	for r, err := range onAll(2, func(r int) error { return errors.Join(ranks[r].gather(t, 16), ranks[r].wait(t.Context())) }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		assert.Equal(t, 2, fabric.CauseOf(err).Peer, "rank %d", r)
	}
}

func TestAMailboxRankThatClosesIsNamedAtOnce(t *testing.T) {
	for name, change := range map[string]func(*verbstest.Fabric){"flags": nil, "immediates": func(f *verbstest.Fabric) { f.OutOfOrder(true) }} {
		t.Run(name, func(t *testing.T) {
			_, ranks := mailWorld(t, 3, func(g *mailGroup) {
				g.timeout, g.c = fabric.NoTimeout, Config{} // whose retries would take seconds
				if change != nil {
					change(g.f)
				}
			})
			errs := onAll(3, func(r int) error { return errors.Join(ranks[r].gather(t, 16), ranks[r].wait(t.Context())) })
			require.NoError(t, errors.Join(errs...))
			require.NoError(t, ranks[2].Close())
			for r, err := range onAll(2, func(r int) error {
				call := ranks[r].gather(t, 16)
				if r == 1 {
					call = ranks[r].swap(t, 16, 2)
				}
				return errors.Join(call, ranks[r].wait(t.Context()))
			}) {
				require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
				assert.ErrorContains(t, err, "rank 2 has closed its part of the group", "rank %d", r)
			}
		})
	}
}

// Close lets go a stream whose kernel waits, and one of which nobody waits for the call.
func TestCloseEndsAMailboxWait(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	require.NoError(t, ranks[0].gather(t, 16))
	require.NoError(t, ranks[0].gather(t, 16))
	ranks[0].reach(0, 2)
	waits := make(chan error, 1)
	go func() { waits <- ranks[0].wait(t.Context()) }()
	require.NoError(t, ranks[0].Close())
	require.ErrorIs(t, <-waits, fabric.ErrClosed)
	require.ErrorIs(t, ranks[0].gather(t, 16), fabric.ErrClosed)
	require.NoError(t, ranks[0].s.Synchronize(t.Context()))
}

// The opposite ranks of a ring talk while those between are in no call.
func TestAMailboxRelaysWithoutACallOfItsRank(t *testing.T) {
	for name, change := range map[string]func(*verbstest.Fabric){"flags": nil, "immediates": func(f *verbstest.Fabric) { f.OutOfOrder(true) }} {
		t.Run(name, func(t *testing.T) {
			_, ranks := mailRing(t, func(g *mailGroup) {
				if change != nil {
					change(g.f)
				}
			})
			for r, err := range onAll(4, func(r int) error {
				m := ranks[r]
				for range 50 * (1 - r%2) {
					if err := errors.Join(m.swap(t, 100, 2-r), m.wait(t.Context())); err != nil {
						return err
					}
				}
				return nil
			}) {
				require.NoError(t, err, "rank %d", r)
			}
		})
	}
}

func mailRing(t *testing.T, change func(g *mailGroup)) (*mailGroup, []*mailRank) {
	return mailWorld(t, 4, func(g *mailGroup) {
		g.f = inMemory(t, verbstest.Ring(4))
		change(g)
	})
}

func TestAMailboxRelayThatIsCutEndsAllAlike(t *testing.T) {
	g, ranks := mailRing(t, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	g.f.Host(1).HCA(0).Link(false)
	causes := make([]string, 4)
	for r, err := range onAll(4, func(r int) error { return untilItFails(t, ranks[r]) }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		causes[r] = fabric.CauseOf(err).Text
		assert.Equal(t, causes[0], causes[r])
	}
}

func TestANoteIsRelayed(t *testing.T) {
	for name, change := range map[string]func(*verbstest.Fabric){"flags": nil, "immediates": func(f *verbstest.Fabric) { f.OutOfOrder(true) }} {
		t.Run(name, func(t *testing.T) {
			_, ranks := mailRing(t, func(g *mailGroup) {
				if change != nil {
					change(g.f)
				}
			})
			for r, err := range onAll(4, func(r int) error {
				m := ranks[r]
				call := error(nil)
				switch r {
				case 0:
					call = m.swap(t, 48, 2)
				case 2:
					call = m.Barrier(m.stream())
				default:
					for m.Check() == nil {
						runtime.Gosched()
					}
				}
				return errors.Join(call, m.wait(t.Context()))
			}) {
				require.ErrorIs(t, err, fabric.ErrDesync, "rank %d", r)
				assert.ErrorContains(t, err, "rank 2 is in barrier seq 1, 0 bytes; rank 0 is in exchange seq 1, 48 bytes", "rank %d", r)
			}
		})
	}
}

// Close waits for a launch that its stream has not come to.
func TestCloseWaitsForAStreamWithAMailboxCall(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	release, err := ranks[0].hold()
	require.NoError(t, err)
	require.NoError(t, ranks[0].gather(t, 16))
	closed := make(chan error, 1)
	go func() { closed <- ranks[0].Close() }()
	for !ranks[0].path.closing.Load() {
		runtime.Gosched()
	}
	select {
	case err := <-closed:
		t.Errorf("closed before the stream has passed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	release()
	require.NoError(t, <-closed)
}

// A rank that is between others stays for a while, until they say goodbye.
func TestAMailboxRelayStaysWhileItIsNeeded(t *testing.T) {
	_, ranks := mailRing(t, func(*mailGroup) {})
	for r, err := range onAll(4, func(r int) error {
		m := ranks[r]
		for range 30 * (1 - r%2) {
			if err := errors.Join(m.swap(t, 100, 2-r), m.wait(t.Context())); err != nil {
				return err
			}
		}
		return m.Close()
	}) {
		require.NoError(t, err, "rank %d", r)
	}
}

// A queue pair to a rank that has closed its part may fail: that ends nobody's group.
func TestAQueuePairToAClosedRankFailsNobody(t *testing.T) {
	mem := make([]byte, lettersBytes(2, pageBytes))
	own, err := newLetters(mem, 0, 2, 0, pageBytes)
	require.NoError(t, err)
	w := &wire{hop: hop{rank: 1, name: "here to there", failure: "retries"}}
	m := &Mailbox{own: own, ends: []mailHop{{wire: w, peer: 1}}}
	require.ErrorIs(t, m.failedHop(), fabric.ErrPeerFailed)
	own.store(mailFlagAt(classPair, 1, 1, 0), flagOf(farewellTag, 5))
	require.NoError(t, m.failedHop())
}

// A rank whose call has ended may close at once: the others still get what it sent.
func TestWhatTheMailboxSentArrivesThoughItsRankCloses(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 4})
	for i := range 20 {
		topology := verbstest.Switch(4, 1)
		if i%2 == 1 {
			topology = verbstest.Ring(4)
		}
		f := inMemory(t, topology)
		ranks := (&mailGroup{w: w, f: f, world: 4, timeout: 10 * time.Second}).open(t)
		f.Delay(0, 2*time.Millisecond)
		for r, err := range onAll(4, func(r int) error {
			return errors.Join(ranks[r].gather(t, 300), ranks[r].wait(t.Context()), ranks[r].Close())
		}) {
			require.NoError(t, err, "rank %d", r)
		}
		mailDone(t, ranks)
		assert.Zero(t, f.Left())
	}
}

// What a peer's completions claim is believed only as far as it can be.
func TestAnImmediateThatCannotBeIsRefused(t *testing.T) {
	g, ranks := mailWorld(t, 2, func(g *mailGroup) { g.f.DenyOrder(true) })
	g.f.Host(1).HCA(0).Tamper(func(imm, n uint32) (uint32, uint32) { return imm + 5, n })
	for r, err := range onAll(2, func(r int) error { return untilItFails(t, ranks[r]) }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		assert.ErrorContains(t, err, "rank 0 claims a call whose number ends in 0x7 where 2 is next", "rank %d", r)
	}
	g.f.Host(1).HCA(0).Tamper(nil)
}

// A failure of the other path is the mailbox's.
func TestAFailureOfTheOtherPathEndsAMailboxWait(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) { g.timeout = fabric.NoTimeout })
	require.NoError(t, ranks[0].gather(t, 16))
	ranks[0].reach(0, 2)
	ranks[1].path.rest.Abort(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1, From: 1, Text: "the other path broke"})
	for r, m := range ranks {
		err := m.wait(t.Context())
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		assert.ErrorContains(t, err, "the other path broke", "rank %d", r)
		m.ended(t, fabric.ErrPeerFailed)
	}
}

// brokenRest is another path whose failure nobody else hears of.
type brokenRest struct {
	fabric.StreamTransport
	cause atomic.Pointer[fabric.Cause]
}

func (r *brokenRest) Sync(ctx context.Context, s fabric.Stream) error {
	if c := r.cause.Load(); c != nil {
		return c
	}
	return r.StreamTransport.Sync(ctx, s)
}

func TestWhatTheOtherPathSaysEndsAMailboxWait(t *testing.T) {
	rests := make([]*brokenRest, 2)
	_, ranks := mailWorld(t, 2, func(g *mailGroup) {
		g.timeout = fabric.NoTimeout
		g.change = func(r int, c *MailboxConfig) {
			rests[r] = &brokenRest{StreamTransport: c.Rest}
			c.Rest, c.Arbiter = rests[r], nil
		}
	})
	require.NoError(t, ranks[0].gather(t, 16))
	ranks[0].reach(0, 2)
	rests[0].cause.Store(&fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 1, From: 0, Text: "the other path broke"})
	err := ranks[0].path.Sync(t.Context(), ranks[0].stream())
	require.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.NotNil(t, ranks[0].path.failed.Load())
	require.NoError(t, ranks[0].s.Synchronize(t.Context()), "its kernel is let go")
}

// A call that ends by ctx leaves the group alone.
func TestAMailboxWaitEndsByItsContext(t *testing.T) {
	_, ranks := mailWorld(t, 2, nil)
	require.NoError(t, ranks[0].gather(t, 16))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, ranks[0].Wait(ctx, ranks[0].stream()), context.DeadlineExceeded)
	require.NoError(t, ranks[1].gather(t, 16))
	for _, m := range ranks {
		require.NoError(t, m.wait(t.Context()))
	}
}
