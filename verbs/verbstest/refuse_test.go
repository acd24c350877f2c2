package verbstest_test

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// A write with immediate that finds no receive is sent again, and so is all behind it.
func TestNothingPassesAReceive(t *testing.T) {
	for seed := range uint64(10) {
		f := fabric(t, seed, verbstest.Switch(2, 1))
		f.OutOfOrder(true)
		a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{RNRRetries: 7})
		f.Hold()
		a.Mem.Bytes()[0] = 1
		imm := a.Write(b, 0, 0, 0)
		imm.Op = verbs.OpWriteImm
		post(t, a, imm, a.Write(b, 0, 100, 1))
		for range 20 {
			f.Step()
		}
		assert.Zero(t, b.Mem.Bytes()[100])
		_, err := b.QP.PostRecv(verbs.RecvWR{})
		require.NoError(t, err)
		f.Resume()
		statuses(t, a, verbs.StatusSuccess, verbs.StatusSuccess)
		assert.Equal(t, byte(1), b.Mem.Bytes()[100])
	}
}

func TestAQueuePairThatAllowsNoWrites(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{Access: verbs.AccessRemoteRead})
	read := a.Write(b, 0, 0, 8)
	read.Op = verbs.OpRead
	_, err := b.QP.PostRecv(verbs.RecvWR{ID: 9})
	require.NoError(t, err)
	post(t, a, read, a.Write(b, 0, 0, 8))
	sent, err := a.Poll(2)
	require.NoError(t, err)
	assert.Equal(t, [2]verbs.Status{verbs.StatusSuccess, verbs.StatusRemoteAccess}, [2]verbs.Status{sent[0].Status, sent[1].Status})
	assert.NotEqual(t, verbs.CompletedWrite, sent[1].Op, "nor is what it was")
	event, err := b.C.NextEvent(within(t))
	require.NoError(t, err)
	assert.Equal(t, verbs.AsyncEvent{Type: verbs.EventQPAccess, QP: b.QP}, event)
	got, err := b.Poll(1)
	require.NoError(t, err)
	assert.Equal(t, verbs.StatusFlushed, got[0].Status)
	assert.NotZero(t, got[0].Bytes, "a failed completion's other fields are garbage")
}

func TestAPeerThatIsAnothersOrBeginsElsewhereDoesNotAnswer(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, impatient())
	c, _ := pair(t, f, verbs.QPConfig{}, impatient())
	require.NoError(t, c.QP.Reset())
	k := impatient()
	k.GIDIndex, k.PSN, k.Remote = c.GID.Index, 0x1234, verbs.Endpoint{QPN: b.QP.QPN(), PSN: 0x1234, GID: b.GID.GID}
	require.NoError(t, c.QP.Connect(k))
	post(t, c, c.Write(b, 0, 0, 8))
	statuses(t, c, verbs.StatusRetryExceeded)

	require.NoError(t, a.QP.Reset())
	k.PSN++
	require.NoError(t, a.QP.Connect(k))
	post(t, a, a.Write(b, 0, 0, 8))
	statuses(t, a, verbs.StatusRetryExceeded)
}

func TestMemoryThatIsNotThereIsRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing tells what is mapped")
	}
	f := fabric(t, 1, verbstest.Switch(1, 1))
	pd, err := open(t, f, 0, 0).NewPD()
	require.NoError(t, err)
	_, err = pd.RegisterPages(1<<46, 4096, verbs.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT)
}

func TestOpenAndCloseLeaveNothing(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	libraries := f.Libraries()
	require.Len(t, libraries, 2)
	for i := range 100 {
		c, err := libraries[i%2].Device("mem0")
		require.NoError(t, err)
		ctx, err := c.Open()
		require.NoError(t, err)
		e, err := conform.NewEnd(within(t), ctx, verbs.QPConfig{}, conform.All)
		require.NoError(t, err)
		assert.Equal(t, verbstest.Left{Contexts: 1, PDs: 1, MRs: 1, CQs: 1, QPs: 1, Registered: conform.Bytes}, f.Host(i%2).Left())
		assert.Equal(t, f.Host(i%2).Left(), f.Left())
		require.NoError(t, ctx.Close())
		require.NoError(t, e.Close())
		require.Zero(t, f.Left())
	}
}
