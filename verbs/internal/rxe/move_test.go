//go:build rxevm && linux

package rxe

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
)

func TestAWriteArrivesInWhole(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	for i, n := range []int{0, 1, 4095, 4096, 4097, memory} {
		fill(a.mem.Bytes(), byte(i))
		clear(b.mem.Bytes())
		a.send(t, verbs.SendWR{ID: 7, Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(0, uint32(n))), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
		wc := a.poll(t, 1)[0]
		require.NoError(t, a.cq.Err(wc))
		assert.Equal(t, uint64(7), wc.ID)
		assert.Equal(t, verbs.CompletedWrite, wc.Op)
		assert.Equal(t, a.qp.QPN(), wc.QPN)
		assert.Equal(t, a.mem.Bytes()[:n], b.mem.Bytes()[:n], n)
		assert.Equal(t, make([]byte, memory-n), b.mem.Bytes()[n:], n)
	}
}

func TestAReadFetches(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	fill(b.mem.Bytes(), 9)
	a.send(t, verbs.SendWR{Op: verbs.OpRead, Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(100, 5000)), RemoteAddr: b.mr.Addr() + 3, RKey: b.mr.RKey()})
	wc := a.poll(t, 1)[0]
	require.NoError(t, a.cq.Err(wc))
	assert.Equal(t, verbs.CompletedRead, wc.Op)
	assert.Equal(t, b.mem.Bytes()[3:5003], a.mem.Bytes()[100:5100])
}

func TestImmediatesArriveInOrder(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	const n = 64
	for i := range uint64(n) {
		b.receive(t, verbs.RecvWR{ID: i})
	}
	for i := range uint32(n) {
		a.send(t, verbs.SendWR{Op: verbs.OpWriteImm, Imm: 0xfeed0000 + i, Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(0, i)), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
	}
	for i, wc := range b.poll(t, n) {
		require.NoError(t, b.cq.Err(wc))
		assert.Equal(t, uint64(i), wc.ID)
		assert.Equal(t, verbs.CompletedRecvWrite, wc.Op)
		assert.Equal(t, verbs.CompletionImm, wc.Flags&verbs.CompletionImm)
		assert.Equal(t, 0xfeed0000+uint32(i), wc.Imm)
		assert.Equal(t, uint32(i), wc.Bytes)
	}
	a.poll(t, n)
}

func TestMessagesGoBothWays(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{MaxSendSGE: 2, MaxRecvSGE: 2}, verbs.Connection{})
	for i, e := range [][2]*end{{a, b}, {b, a}} {
		from, to := e[0], e[1]
		fill(from.mem.Bytes()[:8192], byte(i+3))
		to.receive(t, verbs.RecvWR{ID: 5, SGE: []verbs.SGE{to.mr.SGE(16384, 1000), to.mr.SGE(32768, 6000)}})
		from.send(t, verbs.SendWR{ID: 6, Op: verbs.OpSendImm, Imm: 0x01020304, Flags: verbs.SendSignaled, SGE: []verbs.SGE{from.mr.SGE(0, 3000), from.mr.SGE(4096, 3000)}})
		wc := to.poll(t, 1)[0]
		require.NoError(t, to.cq.Err(wc))
		assert.Equal(t, uint64(5), wc.ID)
		assert.Equal(t, verbs.CompletedRecv, wc.Op)
		assert.Equal(t, uint32(6000), wc.Bytes)
		assert.Equal(t, uint32(0x01020304), wc.Imm)
		sent := append(append([]byte(nil), from.mem.Bytes()[:3000]...), from.mem.Bytes()[4096:7096]...)
		assert.Equal(t, sent[:1000], to.mem.Bytes()[16384:17384])
		assert.Equal(t, sent[1000:], to.mem.Bytes()[32768:37768])
		assert.Equal(t, verbs.CompletedSend, from.poll(t, 1)[0].Op)
	}
}

func TestAnInlineWritesMemoryIsFreeAtOnce(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	require.GreaterOrEqual(t, a.qp.Limits().MaxInline, 64)
	plain, err := verbs.NewMemory(64) // not registered
	require.NoError(t, err)
	defer plain.Close()
	for i := range 20 {
		fill(plain.Bytes(), byte(i))
		want := append([]byte(nil), plain.Bytes()...)
		a.send(t, verbs.SendWR{Flags: verbs.SendInline | verbs.SendSignaled, SGE: []verbs.SGE{{Addr: uint64(plain.Addr()), Length: 64}}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()})
		clear(plain.Bytes())
		require.NoError(t, a.cq.Err(a.poll(t, 1)[0]))
		assert.Equal(t, want, b.mem.Bytes()[:64])
	}
}

// The payload, then its flag: the shape of a small call.
func TestAFlagBehindAPayloadSaysThatItIsThere(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{}, verbs.Connection{})
	flag := (*uint64)(unsafe.Pointer(&b.mem.Bytes()[memory-8]))
	word := a.mem.Bytes()[memory-8:]
	for round := uint64(1); round <= 200; round++ {
		n := uint32(round*331)%(32<<10) + 1
		fill(a.mem.Bytes()[:n], byte(round))
		*(*uint64)(unsafe.Pointer(unsafe.SliceData(word))) = round
		a.send(t,
			verbs.SendWR{SGE: list(a.mr.SGE(0, n)), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()},
			verbs.SendWR{ID: round, Flags: verbs.SendInline | verbs.SendSignaled, SGE: list(a.mr.SGE(memory-8, 8)), RemoteAddr: b.mr.Addr() + memory - 8, RKey: b.mr.RKey()})
		require.Eventually(t, func() bool { return atomic.LoadUint64(flag) == round }, bound, time.Millisecond)
		require.Equal(t, a.mem.Bytes()[:n], b.mem.Bytes()[:n], round)
		require.Equal(t, round, a.poll(t, 1)[0].ID, "one completion a chain")
	}
}

// More than the C code builds at a time.
func TestALongChainIsOneCall(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{MaxSend: 100}, verbs.Connection{})
	chain := make([]verbs.SendWR, 80)
	for i := range chain {
		chain[i] = verbs.SendWR{ID: uint64(i), Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(i*8, 8)), RemoteAddr: b.mr.Addr() + uint64(i)*8, RKey: b.mr.RKey()}
	}
	fill(a.mem.Bytes(), 1)
	a.send(t, chain...)
	wc := a.poll(t, 80)
	for i := range wc {
		require.NoError(t, a.cq.Err(wc[i]))
		assert.Equal(t, uint64(i), wc[i].ID)
	}
	assert.Equal(t, a.mem.Bytes()[:640], b.mem.Bytes()[:640])

}

func TestAFullQueueTakesAPartOfAChain(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{MaxSend: 100}, verbs.Connection{RNRRetries: 7})
	chain := make([]verbs.SendWR, 80)
	for i := range chain {
		chain[i] = verbs.SendWR{ID: uint64(i), Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(0, 8)), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
	}
	a.send(t, verbs.SendWR{ID: 1000, Op: verbs.OpSend, Flags: verbs.SendSignaled}) // stays until there is a receive
	posted, err := 0, error(nil)
	for err == nil {
		var n int
		n, err = a.qp.PostSend(chain...)
		posted += n
		require.LessOrEqual(t, posted, 250, "the CQ has no more room")
	}
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.ErrorContains(t, err, "ibv_post_send on rxe0: cannot allocate memory (errno 12)")
	assert.GreaterOrEqual(t, posted, 99)
	b.receive(t, verbs.RecvWR{})
	wc := a.poll(t, 1+posted)
	assert.Equal(t, uint64(1000), wc[0].ID)
	for i, wc := range wc[1:] {
		require.NoError(t, a.cq.Err(wc))
		require.Equal(t, uint64(i%80), wc.ID, "what was posted, and no more, completes")
	}
	require.NoError(t, a.qp.Fail())
	n, err := a.cq.Poll(make([]verbs.WC, 4))
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestManyPostAndPollAtOnce(t *testing.T) {
	a, b := pair(t, verbs.QPConfig{MaxSend: 1000}, verbs.Connection{})
	const posters, each = 4, 50
	errs := make(chan error, posters)
	for p := range posters {
		go func() {
			for i := range each {
				if _, err := a.qp.PostSend(verbs.SendWR{ID: uint64(p*each + i), Flags: verbs.SendSignaled, SGE: list(a.mr.SGE(p*8, 8)), RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}); err != nil {
					errs <- fmt.Errorf("poster %d: %w", p, err)
					return
				}
			}
			errs <- nil
		}()
	}
	seen := map[uint64]bool{}
	for _, wc := range a.poll(t, posters*each) {
		require.NoError(t, a.cq.Err(wc))
		seen[wc.ID] = true
	}
	assert.Len(t, seen, posters*each)
	for range posters {
		require.NoError(t, <-errs)
	}
}
