package roce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func TestAWaitThatEndsNamesRankLaneAndFrame(t *testing.T) {
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{Timeout: 300 * time.Millisecond})
	err := g.faces[0].AllGather(make([]byte, 32), make([]byte, 16))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.ErrorContains(t, err, "rank 0 waits for rank 1, which has sent 0 of 16 bytes")
	assert.ErrorContains(t, err, g.ranks[0].peers[1].lanes[0].name)
	assert.ErrorContains(t, err, "frame 2 is next")
	g.close(t)
}

func TestAbortEndsAWait(t *testing.T) {
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{})
	done := make(chan error, 1)
	go func() { done <- g.faces[0].Barrier() }()
	for g.ranks[0].parks.Load() == 0 {
		g.ranks[0].polls.Load()
	}
	g.ranks[0].Abort(errors.New("enough"))
	err := <-done
	require.ErrorIs(t, err, fabric.ErrAborted)
	assert.ErrorContains(t, err, "enough")
	assert.ErrorIs(t, g.faces[0].Barrier(), fabric.ErrAborted, "for good")
	g.close(t)
}

func TestAPortThatGoesDownEndsTheGroupNamingIt(t *testing.T) {
	var told atomic.Pointer[error]
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{PacketTimeout: 8 * time.Millisecond, Retries: 1,
		Failed: func(err error) { told.CompareAndSwap(nil, &err) }})
	g.f.Host(0).HCA(0).Link(false)
	for r, err := range onAll(2, func(r int) error { return g.faces[r].Barrier() }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		assert.ErrorContains(t, err, g.f.Host(r).HCA(0).Name(), "rank %d", r)
	}
	require.NotNil(t, told.Load(), "also without a call")
	assert.ErrorContains(t, *told.Load(), "port 1 is down")
	g.close(t)
}

func TestAPeerThatIsGoneIsNamed(t *testing.T) {
	g := newGroup(t, verbstest.Switch(3, 1), 3, Config{PacketTimeout: 8 * time.Millisecond, Retries: 1})
	require.NoError(t, g.ranks[2].Close())
	for r, err := range onAll(2, func(r int) error { return g.faces[r].Barrier() }) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		assert.ErrorContains(t, err, "rank 2 has closed its part of the group", "rank %d", r)
	}
	g.close(t)
}

// What a peer writes into words and slots is believed only as far as it can be.
func TestWhatCannotBeIsRefused(t *testing.T) {
	for says, harm := range map[string]func(*lane){
		"claims 1000 frames where 1 were taken": func(l *lane) { l.share.words[tailAt/8] = 1000 },
		"gives credit for 1000 frames":          func(l *lane) { l.share.words[creditAt/8] = 1000 },
		"sent bytes that are no frame":          func(l *lane) { l.share.words[tailAt/8] = 2 },
	} {
		t.Run(says, func(t *testing.T) {
			g := newGroup(t, verbstest.Switch(2, 1), 2, Config{Timeout: 5 * time.Second})
			harm(g.ranks[0].peers[1].lanes[0])
			err := g.faces[0].Barrier()
			require.ErrorIs(t, err, fabric.ErrPeerFailed)
			assert.ErrorContains(t, err, says)
			g.close(t)
		})
	}
}

// One rank has begun another call than the other's and looks at nothing: its offer says so before a byte is written there.
func TestADesyncIsRefusedBeforeBytesAreWritten(t *testing.T) {
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{Timeout: time.Second, EagerBytes: 1024, SlotBytes: 1024})
	var ours [2]fabric.Memory
	g.each(t, func(r int, c *fabric.Collective) (err error) { ours[r], err = c.Alloc(10_000); return err })
	begun, err := g.faces[1].Begin(fabric.Call{Op: fabric.Recv, Out: ours[1].Bytes()[5000:], From: 0})
	require.NoError(t, err)
	copy(ours[0].Bytes(), noise(0, 4000))
	err = g.faces[0].Send(ours[0].Bytes()[:4000], 1)
	require.ErrorIs(t, err, fabric.ErrDesync)
	assert.ErrorContains(t, err, "rank 0 is in send seq 1, 4000 bytes")
	assert.ErrorContains(t, err, "rank 1 sent send seq 1, 5000 bytes")
	assert.Equal(t, make([]byte, 5000), ours[1].Bytes()[5000:])
	require.Error(t, begun.Wait())
	g.close(t)
}

// Each step fails on each rank in turn: all ranks end alike.
func TestEachStepFailsOnEachRankAlike(t *testing.T) {
	const world = 3
	for _, verb := range []string{"ibv_open_device", "ibv_alloc_pd", "ibv_create_cq", "ibv_reg_mr", "ibv_create_qp", "ibv_modify_qp", "ibv_post_recv", "ibv_post_send"} {
		for bad := range world {
			f := inMemory(t, verbstest.Switch(world, 1))
			f.Host(bad).Refuse(verb, 1, syscall.EIO)
			ranks, errs := tryOpen(t.Context(), f, world, func(int) Config { return Config{Yield: true, Timeout: 2 * time.Second} })
			for r := range ranks {
				require.Error(t, errs[r], "%s on rank %d: rank %d opened", verb, bad, r)
				assert.ErrorContains(t, errs[r], verb, "on rank %d: rank %d", bad, r)
			}
			t.Logf("%s on rank %d: %v", verb, bad, errs[0])
			assert.Zero(t, f.Left(), "%s on rank %d", verb, bad)
		}
	}
}

func TestOpenEndsByItsContext(t *testing.T) {
	f := inMemory(t, verbstest.Switch(2, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs := tryOpen(ctx, f, 2, func(int) Config { return Config{} })
	for r, err := range errs {
		require.ErrorIs(t, err, context.Canceled, "rank %d", r)
	}
	assert.Zero(t, f.Left())
}

// Memory of a call that has failed is the caller's again: what is put there reaches nobody.
func TestMemoryIsQuietOnceACallHasFailed(t *testing.T) {
	g := newGroup(t, verbstest.Switch(2, 1), 2, Config{SlotBytes: 1024, EagerBytes: 1024, Slots: 64, Timeout: 5 * time.Second})
	const n = 64 << 10
	var ours [2]fabric.Memory
	g.each(t, func(r int, c *fabric.Collective) (err error) { ours[r], err = c.Alloc(n); return err })
	for i := range ours[0].Bytes() {
		ours[0].Bytes()[i] = 1
	}
	g.f.Delay(100*time.Millisecond, 200*time.Millisecond) // all parts are posted long before most are sent
	done := make(chan error, 2)
	for r, face := range g.faces {
		go func() {
			if r == 0 {
				done <- face.Send(ours[0].Bytes(), 1)
				return
			}
			done <- face.Recv(ours[1].Bytes(), 0)
		}()
	}
	arrived := (*uint32)(unsafe.Pointer(&ours[1].Bytes()[1024]))
	for atomic.LoadUint32(arrived) == 0 {
		runtime.Gosched()
	}
	g.ranks[0].Abort(errors.New("enough"))
	require.ErrorIs(t, <-done, fabric.ErrAborted, "rank 0's: rank 1 waits for more")
	for i := range ours[0].Bytes() {
		ours[0].Bytes()[i] = 2
	}
	last := (*uint32)(unsafe.Pointer(&ours[1].Bytes()[n-4]))
	assert.Never(t, func() bool {
		for i := 0; i < n; i += 4 {
			if atomic.LoadUint32((*uint32)(unsafe.Add(unsafe.Pointer(last), 4-n+i))) == 0x02020202 {
				return true
			}
		}
		return false
	}, 300*time.Millisecond, 10*time.Millisecond, "what rank 0 put there since has reached rank 1")
	g.ranks[1].Abort(errors.New("enough"))
	<-done
	g.close(t)
}

func TestARelayThatIsCutEndsAllAlike(t *testing.T) {
	g := newGroup(t, verbstest.Ring(4), 4, Config{PacketTimeout: 8 * time.Millisecond, Retries: 1, Timeout: 3 * time.Second})
	arbiters := fabrictest.Arbiters(4)
	for r, tr := range g.ranks {
		arbiters[r].OnCause(func() { tr.Abort(arbiters[r].Cause()) })
		g.faces[r] = fabric.New(tr, fabric.Options{Timeout: 3 * time.Second, Arbiter: arbiters[r]})
	}
	g.f.Host(1).HCA(0).Link(false)
	causes := make([]string, 4)
	for r, err := range onAll(4, func(r int) (err error) {
		for err == nil { // a rank may have had all that it needs for a barrier
			err = g.faces[r].Barrier()
		}
		return err
	}) {
		require.ErrorIs(t, err, fabric.ErrPeerFailed, "rank %d", r)
		var e *fabric.OpError
		require.ErrorAs(t, err, &e)
		causes[r] = e.Err.Error()
	}
	for _, c := range causes {
		assert.Equal(t, causes[0], c)
	}
	assert.Regexp(t, "port 1 is down|retry counter exceeded", causes[0])
	g.close(t)
}

func TestALossyNetworkLosesNothing(t *testing.T) {
	g := newGroup(t, verbstest.Switch(3, 2), 3, Config{PacketTimeout: 4 * time.Millisecond, SlotBytes: 2048, EagerBytes: 1024, Timeout: 20 * time.Second})
	g.f.Loss(0.01)
	for round := range 20 {
		for _, n := range []int{1, 1000, 50_000} {
			g.each(t, func(r int, c *fabric.Collective) error {
				out := make([]byte, 3*n)
				if err := c.AllGather(out, noise(uint64(round+r), n)); err != nil {
					return err
				}
				for p := range 3 {
					if !bytes.Equal(out[p*n:(p+1)*n], noise(uint64(round+p), n)) {
						return fmt.Errorf("%d bytes of rank %d are wrong", n, p)
					}
				}
				return nil
			})
		}
	}
	g.close(t)
}

func TestTenThousandGathersOfAnySize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := newGroup(t, verbstest.Switch(2, 2), 2, Config{})
	g.each(t, func(r int, c *fabric.Collective) error {
		rng, most := rand.New(rand.NewPCG(7, 7)), 1<<20
		in, out := [2][]byte{noise(0, most), noise(1, most)}, make([]byte, 2*most)
		for i := range 10_000 {
			n := 1 + rng.IntN(64)
			if i%100 == 0 {
				n = 1 + rng.IntN(most)
			}
			if err := c.AllGather(out[:2*n], in[r][:n]); err != nil {
				return err
			}
			if !bytes.Equal(out[:n], in[0][:n]) || !bytes.Equal(out[n:2*n], in[1][:n]) {
				return fmt.Errorf("gather %d of %d bytes is wrong", i, n)
			}
		}
		return nil
	})
	g.close(t)
}

// A rank that has returned from a call may close at once: the others still get what it sent.
func TestWhatWasSentArrivesThoughItsRankCloses(t *testing.T) {
	for name, topology := range map[string]verbstest.Topology{"switch": verbstest.Switch(4, 1), "ring": verbstest.Ring(4)} {
		t.Run(name, func(t *testing.T) {
			f := inMemory(t, topology)
			for range 30 {
				ranks := open(t, f, 4, Config{Yield: true, Timeout: 5 * time.Second, SlotBytes: 64, EagerBytes: 64})
				f.Delay(0, 2*time.Millisecond)
				for r, err := range onAll(4, func(r int) error {
					c := fabric.New(ranks[r], fabric.Options{Timeout: 5 * time.Second})
					return errors.Join(c.Barrier(), c.Close())
				}) {
					require.NoError(t, err, "rank %d", r)
				}
				f.Delay(0, 0)
			}
			assert.Zero(t, f.Left())
		})
	}
}

// A rank that had no room for the credit when it took a frame gives it later: the peer may wait for it, and sends nothing that would remind of it.
func TestCreditIsGivenThoughTheQueueWasFull(t *testing.T) {
	f := inMemory(t, verbstest.Switch(2, 1))
	ranks := open(t, f, 2, Config{Yield: true, Timeout: 2 * time.Second, Order: OrderFlags})
	defer func() {
		for _, tr := range ranks {
			assert.NoError(t, tr.Close())
		}
	}()
	exchange := func(r, n int) error {
		return fabric.New(ranks[r], fabric.Options{Timeout: 2 * time.Second}).Exchange(make([]byte, n), noise(1, n), 1-r)
	}
	for range 2 * ranks[0].c.Slots {
		require.NoError(t, errors.Join(onAll(2, func(r int) error { return exchange(r, 16) })...))
	}
	slots := uint64(ranks[0].c.Slots)
	for r := range ranks {
		l := ranks[r].peers[1-r].lanes[0]
		l.toldAt = l.head - slots // as if nothing of the last round of the ring had been told
		l.credit = l.sent - slots
		require.LessOrEqual(t, l.share.credit(), l.credit)
	}
	require.NoError(t, errors.Join(onAll(2, func(r int) error { return exchange(r, 200_000) })...))
}
