//go:build cgo

package roce

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// The layout is the C compiler's own.
func TestMailboxLayoutIsTheKernels(t *testing.T) {
	at := twin.RegionLayout()
	for name, v := range map[string]int{
		"hf_mailbox": mailboxLen, "hf_region": mailHead, "hf_region.record": recordAt, "hf_region.abort": abortAt, "hf_region.flag": mailFlags,
		"hf_doorbell": bellBytes, "hf_doorbell.epoch": bellEpoch, "hf_doorbell.bytes": bellSizes, "hf_doorbell.flag": bellFlags, "hf_doorbell.ended": bellEnded,
		"hf_call": callBytes, "hf_call.mailbox": callMailbox, "hf_call.region": callRegion, "hf_call.in": callIn, "hf_call.out": callOut,
		"hf_call.bytes": callSize, "hf_call.slot_bytes": callSlot, "hf_call.timeout": callTimeout, "hf_call.world": callWorld, "hf_call.rank": callRank,
		"hf_call.target": callTarget, "hf_call.stripes": callStripes, "hf_call.dtype": callDType, "hf_call.reduce": callReduce, "hf_call.tag": callTag,
		"hf_call.clock": callClock,
	} {
		assert.Equal(t, at[name], uint64(v), name)
	}
	for name, v := range map[string]int{"failed": recordFailed, "target": recordTarget, "peer": recordPeer, "stripe": recordStripe, "seen": recordSeen,
		"awaited": recordAwaited, "microseconds": recordMicros} {
		assert.Equal(t, at["hf_record."+name], uint64(v-recordAt), name)
	}
	assert.Equal(t, 28672+11*8192, (&letters{world: 3, slotBytes: 8192}).recvAt(classPair, 2, 1))
	assert.Equal(t, 28672+17*8192, (&letters{world: 3, slotBytes: 8192}).sendAt(2, 1))
	assert.Equal(t, 28672+18*8192, lettersBytes(3, 8192))
	assert.Equal(t, mailHead, mailFlagAt(classes, 0, 0, 0))
}

// Neither queueing nor carrying out a call allocates: AllocsPerRun counts the proxies' too.
func TestAMailboxCallAllocatesNothing(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) {
		g.driver = func(r int) Driver { return &copying{rank: r} }
		g.change = func(_ int, c *MailboxConfig) { c.RoCE.Addresses = slash24 }
	})
	var in, out [2]fabric.DevPtr
	for r, m := range ranks {
		in[r], out[r] = fabric.DevPtr(m.host(t, 64).Ptr()), fabric.DevPtr(m.host(t, 128).Ptr())
	}
	var failed error
	call := func() {
		before := ranks[0].path.log.ended()
		for r, m := range ranks {
			if err := m.AllGather(m.stream(), out[r], in[r], 64); err != nil {
				failed = err
				return
			}
		}
		for ranks[0].path.log.ended() == before {
			runtime.Gosched()
		}
	}
	for range 300 {
		call()
	}
	assert.Less(t, testing.AllocsPerRun(300, call), 1.0)
	require.NoError(t, failed)
	ranks[0].Abort(errors.New("over")) // for this driver says goodbye into memory that may be freed
}

func (g *mailLog) ended() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done
}

func TestHundredsOfMailboxesLeaveNothing(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	f := inMemory(t, verbstest.Switch(2, 2))
	times := 250
	if underRace {
		times = 25
	}
	before := runtime.NumGoroutine()
	for range times {
		ranks := (&mailGroup{w: w, f: f, world: 2, timeout: 10 * time.Second}).open(t)
		for r, err := range onAll(2, func(r int) error { return errors.Join(ranks[r].gather(t, 64), ranks[r].wait(t.Context())) }) {
			require.NoError(t, err, "rank %d", r)
		}
		mailDone(t, ranks)
	}
	assert.Zero(t, f.Left())
	assert.Empty(t, w.Leaks())
	if !assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 5*time.Second, time.Millisecond) {
		b := make([]byte, 1<<16)
		t.Log(before, runtime.NumGoroutine(), string(b[:runtime.Stack(b, true)]))
	}
}

// An idle group costs next to nothing, with a plan that may be replayed too; a call that waits for its stream little.
func TestAnIdleMailboxLeavesTheCPUAlone(t *testing.T) {
	for _, name := range []string{"idle", "with a plan", "held"} {
		t.Run(name, func(t *testing.T) {
			_, ranks := mailWorld(t, 2, nil)
			release := func() {}
			switch name {
			case "with a plan":
				plan, err := ranks[0].Capture(ranks[0].stream())
				require.NoError(t, err)
				defer func() { assert.NoError(t, errors.Join(plan.End(), plan.Release())) }()
			case "held":
				for r, m := range ranks {
					let, err := m.hold()
					require.NoError(t, err, "rank %d", r)
					release = func(before func()) func() { return func() { before(); let() } }(release)
					require.NoError(t, m.gather(t, 16))
				}
			}
			<-time.After(200 * time.Millisecond)
			before := cpuSpent(t)
			<-time.After(time.Second)
			took := cpuSpent(t) - before
			t.Log(took)
			assert.Less(t, took, 200*time.Millisecond, "of CPU in a second, of two ranks; an idle machine takes a tenth")
			release()
			for _, m := range ranks {
				require.NoError(t, m.wait(t.Context()))
			}
		})
	}
}

func cpuSpent(t *testing.T) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestMailboxBuffersStreamsAndCapturesAreRefusedByName(t *testing.T) {
	_, ranks := mailWorld(t, 2, nil)
	m := ranks[0]
	in, out := fabric.DevPtr(m.host(t, 100).Ptr()), fabric.DevPtr(m.host(t, 200).Ptr())
	for want, call := range map[string]func() error{
		"in, 101 bytes at ":                     func() error { return m.AllGather(m.stream(), fabric.DevPtr(m.host(t, 300).Ptr()), in+4096-50, 101) },
		"out, 402 bytes at ":                    func() error { return m.AllGather(m.stream(), out+4096-50, fabric.DevPtr(m.host(t, 300).Ptr()), 201) },
		"stream 0x123456 is none of gfx1151 So": func() error { return m.AllGather(0x123456, out, in, 8) },
	} {
		err := call()
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, want)
	}
	require.NoError(t, m.s.BeginCapture(hipgo.CaptureRelaxed))
	require.ErrorIs(t, m.AllGather(m.stream(), out, in, 8), fabric.ErrCapture, "without a plan")
	_, err := m.Capture(m.stream())
	require.ErrorIs(t, err, fabric.ErrCapture)
	g, err := m.s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, g.Close())
	p, err := m.Capture(m.stream())
	require.NoError(t, err)
	_, err = m.Capture(m.stream())
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.NoError(t, p.Release())
	for _, r := range ranks {
		require.NoError(t, r.gather(t, 16), "nothing was queued")
	}
	for _, r := range ranks {
		require.NoError(t, r.wait(t.Context()))
	}
}

// Where a launch does not go into the stream the group goes on if the driver says that nothing did, and ends otherwise.
func TestALaunchOfTheMailboxThatFailsEndsTheGroup(t *testing.T) {
	g, ranks := mailWorld(t, 2, nil)
	require.NoError(t, g.w.Fail(hiptest.Fault{Call: "hipModuleLaunchKernel", Code: 2}))
	err := ranks[0].gather(t, 16)
	require.ErrorIs(t, err, fabric.ErrDevice)
	assert.ErrorContains(t, err, "queueing all-gather on stream")
	require.Eventually(t, func() bool { return ranks[1].Check() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, ranks[1].Check(), fabric.ErrDevice)
}

func TestWhatTheMailboxDidIsTold(t *testing.T) {
	_, ranks := mailWorld(t, 2, func(g *mailGroup) { g.gate = stage.Words })
	for r, err := range onAll(2, func(r int) error {
		m := ranks[r]
		for i, call := range []func() error{
			func() error { return m.gather(t, 48) },
			func() error { return m.Barrier(m.stream()) },
			func() error { return m.sum(t, 12, fabric.BF16, fabric.Max) },
			func() error { return m.swap(t, 5, 1-r) },
		} {
			if err := errors.Join(call(), m.wait(t.Context())); err != nil {
				return err
			}
			for m.Stats().Calls < uint64(i+1) { // the proxy may see later than the stream that a call has ended
				runtime.Gosched()
			}
		}
		return nil
	}) {
		require.NoError(t, err, "rank %d", r)
	}
	for _, m := range ranks {
		var said []string
		for _, r := range m.Records() {
			said = append(said, r.String())
		}
		assert.Equal(t, []string{"all-gather seq 1, 48 bytes, done", "barrier seq 1, 0 bytes, done", "all-reduce seq 2, 24 bytes, done",
			"exchange seq 1, 5 bytes, peer " + []string{"1", "0"}[m.Rank()] + ", done"}, said)
		s := m.Stats()
		assert.Equal(t, "mailbox", s.Transport.Kind)
		assert.Equal(t, uint64(48+24+5), s.Bytes)
		p := m.Progress()
		assert.False(t, p.Running)
		assert.Equal(t, fabric.Exchange, p.Op)
		assert.Equal(t, uint64(4), p.Calls)
		assert.Equal(t, uint64(3), p.GroupSeq)
		require.Len(t, s.Transport.Peers, 1)
	}
	require.NoError(t, ranks[0].gather(t, 16))
	ranks[0].reach(0, 4)
	assert.Equal(t, uint64(2), ranks[0].path.Waiting())
	require.Eventually(t, func() bool { return ranks[0].Progress().Running }, 5*time.Second, time.Millisecond)
	require.NoError(t, ranks[1].gather(t, 16))
	require.NoError(t, ranks[0].wait(t.Context()))
	assert.Zero(t, ranks[0].path.Waiting())
}

// Settings that differ, and rails that are not there, are refused alike on all ranks; the path behind goes on by itself.
func TestAMailboxThatCannotBeIsRefusedAlike(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 4})
	for want, g := range map[string]*mailGroup{
		`Mailbox.SlotBytes: rank 0 has "65536", rank 1 has "8192"`: {f: inMemory(t, verbstest.Switch(2, 1)), world: 2, change: func(r int, c *MailboxConfig) {
			c.SlotBytes = 8192 * r
		}},
		"ranks 0 and 2 have no rail": {f: inMemory(t, verbstest.Topology{Hosts: 3, HCAs: 2, Nets: [][]verbstest.Port{{{Host: 0, HCA: 0}, {Host: 1, HCA: 1}}, {{Host: 1, HCA: 0}, {Host: 2, HCA: 1}}}}), world: 3},
	} {
		g.w, g.timeout = w, 5*time.Second
		_, errs := g.tryOpen(t)
		for r, err := range errs {
			require.Error(t, err, "rank %d", r)
			assert.ErrorContains(t, err, want, "rank %d", r)
			assert.Truef(t, errors.Is(err, fabric.ErrMismatch) || errors.Is(err, fabric.ErrUnsupported), "%v", err)
		}
		assert.Zero(t, g.f.Left())
	}
}

// A world of one has no peers, and needs no RDMA.
func TestAMailboxOfOneRankLeavesAllToTheOtherPath(t *testing.T) {
	g := &mailGroup{w: hiptest.Start(t, hiptest.Settings{Devices: 1}), f: inMemory(t, verbstest.Switch(1, 1)), world: 1, timeout: 5 * time.Second}
	g.f.Host(0).NoRDMA()
	ranks := g.open(t)
	require.NoError(t, ranks[0].gather(t, 16))
	require.NoError(t, ranks[0].wait(t.Context()))
	assert.Equal(t, uint64(1), ranks[0].path.rest.Stats().Calls)
	mailDone(t, ranks)
}
