package verbstest_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// What loses packets ends as retries exceeded, and when it is mended before, as success.
func TestWhatIsLostIsRetriedAndThenExceeded(t *testing.T) {
	for name, breaks := range map[string]func(f *verbstest.Fabric, on bool){
		"cut": func(f *verbstest.Fabric, on bool) {
			if on {
				f.Cut(1, 0)
			} else {
				f.Heal(0, 1)
			}
		},
		"a mute peer": func(f *verbstest.Fabric, on bool) { f.Host(1).HCA(0).Mute(on) },
		"mute":        func(f *verbstest.Fabric, on bool) { f.Host(0).HCA(0).Mute(on) },
		"a peer down": func(f *verbstest.Fabric, on bool) { f.Host(1).HCA(0).Link(!on) },
		"down":        func(f *verbstest.Fabric, on bool) { f.Host(0).HCA(0).Link(!on) },
		"loss":        func(f *verbstest.Fabric, on bool) { f.Loss(map[bool]float64{true: 1}[on]) },
		"large frames": func(f *verbstest.Fabric, on bool) {
			f.Host(0).HCA(0).WireMTU(map[bool]int{true: 1024, false: 4096}[on])
		},
		"partitions": func(f *verbstest.Fabric, on bool) {
			f.Host(1).HCA(0).PKeys(map[bool]uint16{true: 0x8001, false: 0x7fff}[on])
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fabric(t, 1, verbstest.Switch(2, 1))
			a, b := pair(t, f, verbs.QPConfig{}, impatient())
			breaks(f, true)
			post(t, a, a.Write(b, 0, 0, 4096), a.Write(b, 0, 0, 8))
			statuses(t, a, verbs.StatusRetryExceeded, verbs.StatusFlushed)
			breaks(f, false)
			c, d := pair(t, f, verbs.QPConfig{}, verbs.Connection{Timeout: time.Millisecond, Retries: 7})
			f.Hold()
			breaks(f, true)
			post(t, c, c.Write(d, 0, 0, 4096))
			require.True(t, f.Step())
			breaks(f, false)
			f.Resume()
			statuses(t, c, verbs.StatusSuccess)
		})
	}
}

func TestLossLosesNothing(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{Timeout: 10 * time.Microsecond, Retries: 7})
	f.Loss(0.05)
	for i := range conform.Bytes {
		a.Mem.Bytes()[i] = byte(i * 3)
	}
	for range 20 {
		post(t, a, a.Write(b, 0, 0, conform.Bytes))
		statuses(t, a, verbs.StatusSuccess)
	}
	assert.Equal(t, a.Mem.Bytes(), b.Mem.Bytes())
}

func TestEachEndOfACableHearsOfItAndOfASwitchOnlyOne(t *testing.T) {
	for _, of := range []verbstest.Topology{verbstest.Ring(3), verbstest.Switch(2, 1)} {
		f := fabric(t, 1, of)
		a, b := open(t, f, 0, 0), open(t, f, 1, f.Host(1).HCAs()-1)
		down := f.Host(0).HCA(0)
		down.Link(false)
		down.Link(false)
		event, err := a.NextEvent(within(t))
		require.NoError(t, err)
		assert.Equal(t, verbs.AsyncEvent{Type: verbs.EventPortError, Port: 1}, event)
		port, err := a.Port(1)
		require.NoError(t, err)
		assert.Equal(t, verbs.PortDown, port.State)
		_, there, err := b.Event()
		require.NoError(t, err)
		assert.Equal(t, f.Host(1).HCAs() == 2, there)
		down.Link(true)
		event, err = a.NextEvent(within(t))
		require.NoError(t, err)
		assert.Equal(t, verbs.EventPortActive, event.Type)
		_, there, _ = a.Event()
		assert.False(t, there)
	}
}

func TestADownedPortThatFailsLocally(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	f.Host(0).HCA(0).FailLocally(true)
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{RNRRetries: 7})
	post(t, a, verbs.SendWR{Op: verbs.OpSend}, a.Write(b, 0, 0, 8))
	f.Host(0).HCA(0).Link(false)
	statuses(t, a, verbs.StatusLocalOperation, verbs.StatusFlushed)
}

func TestHostileCompletions(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
	f.Host(1).HCA(0).Tamper(func(imm, bytes uint32) (uint32, uint32) { return ^imm, bytes + 1<<31 })
	_, err := b.QP.PostRecv(verbs.RecvWR{})
	require.NoError(t, err)
	w := a.Write(b, 0, 0, 8)
	w.Op, w.Imm = verbs.OpWriteImm, 1
	post(t, a, w)
	got, err := b.Poll(1)
	require.NoError(t, err)
	assert.Equal(t, [2]uint32{^uint32(1), 1<<31 + 8}, [2]uint32{got[0].Imm, got[0].Bytes})
}

func TestACQThatOverflowsTakesItsQueuePairs(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{MaxSend: 1000}, verbs.Connection{})
	for range a.CQ.Entries() + 1 {
		post(t, a, a.Write(b, 0, 0, 1))
	}
	event, err := a.C.NextEvent(within(t))
	require.NoError(t, err)
	assert.Equal(t, verbs.AsyncEvent{Type: verbs.EventCQError, CQ: a.CQ}, event)
	state, _, err := a.QP.Query()
	require.NoError(t, err)
	assert.Equal(t, verbs.StateErr, state)
}

// Unsignaled requests give their slots back with a later one that is polled, and not before.
func TestASlotIsFreeWhenALaterCompletionWasPolled(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{MaxSend: 4}, verbs.Connection{})
	quiet := a.Write(b, 0, 0, 1)
	quiet.Flags = 0
	f.Hold()
	post(t, a, quiet, quiet, quiet, a.Write(b, 0, 0, 1))
	for f.Step() {
	}
	_, err := a.QP.PostSend(quiet)
	require.ErrorIs(t, err, syscall.ENOMEM)
	statuses(t, a, verbs.StatusSuccess)
	post(t, a, quiet, quiet, quiet, quiet)
	for f.Step() {
	}
	_, err = a.QP.PostSend(quiet)
	require.ErrorIs(t, err, syscall.ENOMEM, "none of them said so")
}

func TestCallsAreRefusedByName(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(1, 1))
	c := open(t, f, 0, 0)
	f.Host(0).Refuse("ibv_alloc_pd", 2, syscall.EPERM)
	first, err := c.NewPD()
	require.NoError(t, err)
	_, err = c.NewPD()
	require.ErrorIs(t, err, syscall.EPERM)
	f.Host(0).Refuse("ibv_alloc_pd", 0, 0)
	_, err = c.NewPD()
	require.NoError(t, err)

	f.Host(0).Memlock(conform.Bytes)
	m, err := verbs.NewMemory(conform.Bytes)
	require.NoError(t, err)
	mr, err := first.Register(m, verbs.AccessLocalWrite)
	require.NoError(t, err)
	_, err = first.Register(m, verbs.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.ErrorIs(t, first.Close(), syscall.EBUSY)
	require.NoError(t, mr.Close())
	_, err = first.Register(m, verbs.AccessRemoteWrite)
	require.ErrorIs(t, err, syscall.EINVAL, "a peer's write needs a local one")
	require.NoError(t, m.Close())

	f.Host(0).NoRDMA()
	_, err = f.Host(0).Library().Devices()
	require.ErrorIs(t, err, verbs.ErrNoDevice)
}

func TestAnEmptyCQIsRefusedToo(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(1, 1))
	a := end(t, open(t, f, 0, 0), verbs.QPConfig{})
	poll := func() error { _, err := a.CQ.Poll(make([]verbs.WC, 1)); return err }
	require.NoError(t, poll())
	f.Host(0).Refuse("ibv_poll_cq", 1, syscall.EIO)
	require.ErrorIs(t, poll(), syscall.EIO)
	f.Host(0).Refuse("ibv_poll_cq", 0, 0)
	require.NoError(t, poll())
}

func TestABrokenDevice(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, _ := pair(t, f, verbs.QPConfig{}, verbs.Connection{RNRRetries: 7})
	post(t, a, verbs.SendWR{Op: verbs.OpSend})
	f.Host(0).HCA(0).Fatal()
	event, err := a.C.NextEvent(within(t))
	require.NoError(t, err)
	assert.Equal(t, verbs.EventDeviceFatal, event.Type)
	statuses(t, a, verbs.StatusFlushed)
	_, err = a.C.NewPD()
	require.ErrorIs(t, err, syscall.EIO)
}
