//go:build linux || darwin

package tcp

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// against opens rank 0 of two; rank 1 is a socket in the test's hands.
func against(t *testing.T, c Config) (*fabric.Collective, *net.TCPConn) {
	t.Helper()
	meshes := localMeshes(t, 2)
	meshes[0].alone = true
	var tr *Transport
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { tr, err = Open(context.Background(), meshes[0], c) })
	peer, dialErr := meshes[1].Dial(context.Background(), 0, fabric.Lane{Channel: "host"})
	require.NoError(t, dialErr)
	wg.Wait()
	require.NoError(t, err)
	g := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
	t.Cleanup(func() { g.Close(); peer.Close() })
	return g, peer
}

// expected is the header that rank 0's all-gather of 16 bytes expects of rank 1.
func expected() frame.Header {
	return frame.Header{Binding: binding([16]byte{1, 2, 3}, "", "host"), Order: 1, Class: fabric.Group, Op: fabric.AllGather, Rank: frame.NoRank, Seq: 1, Total: 16, Payload: 16}
}

func write(t *testing.T, c net.Conn, h frame.Header, seal bool, payload []byte) {
	var b [frame.Size]byte
	h.Put(&b)
	if seal {
		frame.Seal(&b, payload)
	}
	_, err := c.Write(append(b[:], payload...))
	require.NoError(t, err)
}

func TestAFrameOfAnythingElseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*frame.Header)
		kind  error
		says  string
	}{
		"operation": {func(h *frame.Header) { h.Op = fabric.AllToAll }, fabric.ErrDesync, "rank 0 is in all-gather seq 1, 16 bytes; rank 1 sent all-to-all seq 1, 16 bytes"},
		"class":     {func(h *frame.Header) { h.Op, h.Class = fabric.Send, fabric.Pair }, fabric.ErrDesync, "rank 1 sent send seq 1"},
		"seq":       {func(h *frame.Header) { h.Seq = 9 }, fabric.ErrDesync, "rank 1 sent all-gather seq 9"},
		"total":     {func(h *frame.Header) { h.Total = 1 << 60 }, fabric.ErrDesync, "1152921504606846976 bytes"},
		"payload":   {func(h *frame.Header) { h.Payload = 1 << 31 }, fabric.ErrDesync, "rank 1 sent"},
		"hash":      {func(h *frame.Header) { h.Hash = 5 }, fabric.ErrDesync, "hash 0x5"},
		"part":      {func(h *frame.Header) { h.Part = 2 }, fabric.ErrDesync, "part 2"},
		"step":      {func(h *frame.Header) { h.Step = frame.Result }, fabric.ErrDesync, "step 1"},
		"order":     {func(h *frame.Header) { h.Order++ }, fabric.ErrDesync, "rank 1 sent"},
		"binding":   {func(h *frame.Header) { h.Binding++ }, fabric.ErrPeerFailed, "of session"},
		"a notice":  {func(h *frame.Header) { *h = frame.Header{Kind: frame.Ack, Binding: h.Binding, Rank: frame.NoRank} }, fabric.ErrDesync, "a notice"},
		"nonsense":  {func(h *frame.Header) { h.Op = 77 }, fabric.ErrPeerFailed, "bytes that are no frame"},
	} {
		t.Run(name, func(t *testing.T) {
			g, peer := against(t, Config{})
			h := expected()
			c.spoil(&h)
			write(t, peer, h, false, make([]byte, 16))
			out := make([]byte, 32)
			err := g.AllGather(out, []byte("0123456789abcdef"))
			assert.ErrorIs(t, err, c.kind)
			assert.ErrorContains(t, err, c.says)
			assert.Equal(t, make([]byte, 16), out[16:], "no byte of a refused frame is used")
		})
	}
}

func TestStrangeBytesEndTheCall(t *testing.T) {
	g, peer := against(t, Config{})
	_, err := peer.Write([]byte("GET / HTTP/1.1\r\nHost: example\r\nAccept: */*\r\nUser-Agent: stranger/1.0\r\n\r\n......"))
	require.NoError(t, err)
	err = g.AllGather(make([]byte, 32), make([]byte, 16))
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "no frame")
}

func TestAHostileLengthAllocatesNothing(t *testing.T) {
	g, peer := against(t, Config{})
	h := expected()
	h.Total, h.Payload = 1<<62, 1<<32-1
	write(t, peer, h, false, nil)
	out, in := make([]byte, 32), make([]byte, 16)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := g.AllGather(out, in)
	runtime.ReadMemStats(&after)
	assert.Error(t, err)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestVerifySeesAChangedByte(t *testing.T) {
	for _, n := range []int{16, 4096} {
		h := expected()
		h.Verify, h.Total, h.Payload = true, uint64(n), uint32(n)
		payload := make([]byte, n)
		t.Run("intact", func(t *testing.T) {
			g, peer := against(t, Config{Verify: true})
			write(t, peer, h, true, payload)
			assert.NoError(t, g.AllGather(make([]byte, 2*n), make([]byte, n)))
		})
		for _, at := range []int{0, 9, 40, frame.Size - 5, frame.Size, frame.Size + n - 1} {
			g, peer := against(t, Config{Verify: true})
			var b [frame.Size]byte
			h.Put(&b)
			frame.Seal(&b, payload)
			whole := append(b[:], payload...)
			whole[at] ^= 4
			_, err := peer.Write(whole)
			require.NoError(t, err)
			err = g.AllGather(make([]byte, 2*n), make([]byte, n))
			assert.ErrorIs(t, err, fabric.ErrPeerFailed, "byte %d", at)
			assert.ErrorContains(t, err, "CRC32C", "byte %d", at)
		}
	}
}

func TestAClosedPeerIsNamed(t *testing.T) {
	g, peer := against(t, Config{})
	peer.Close()
	err := g.AllGather(make([]byte, 32), make([]byte, 16))
	var op *fabric.OpError
	require.ErrorAs(t, err, &op)
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.Equal(t, 1, op.Peer)
	assert.Equal(t, "tcp", op.Path)
	assert.Equal(t, err.(*fabric.OpError).Err, g.Barrier().(*fabric.OpError).Err, "every later call gives the first cause")
}

func TestATimeoutNamesThePeerAndTheCall(t *testing.T) {
	ts := open(t, 3, Config{})
	g := fabric.New(ts[0], fabric.Options{Timeout: 50 * time.Millisecond})
	err := g.AllGather(make([]byte, 48), make([]byte, 16))
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "rank 0 waits for rank 1, which has sent 0 of 16 bytes")

	ts = open(t, 2, Config{})
	g = fabric.New(ts[0], fabric.Options{Timeout: 50 * time.Millisecond})
	err = g.Send(make([]byte, 64<<20), 1)
	assert.ErrorIs(t, err, fabric.ErrTimeout)
	assert.ErrorContains(t, err, "use SendRecv or Exchange")
}

func TestOpenRefusesAWorldByName(t *testing.T) {
	_, err := Open(context.Background(), &localMesh{world: 65}, Config{})
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "world 65 is outside 1..64")
}

func TestAFailedOpenClosesWhatItOpened(t *testing.T) {
	meshes := localMeshes(t, 3)
	meshes[0].alone = true
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	peer, err := meshes[2].Dial(context.Background(), 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	defer peer.Close()
	_, err = Open(ctx, meshes[0], Config{}) // rank 1 never comes
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "rank 1")
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = peer.Read(make([]byte, 1))
	assert.ErrorContains(t, err, "EOF", "the connection that stood is closed")
}

func TestNoCallAllocates(t *testing.T) {
	ts := open(t, 2, Config{})
	a, b := fabric.New(ts[0], fabric.Options{}), fabric.New(ts[1], fabric.Options{})
	rounds := 100
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	calls := func(c *fabric.Collective, peer int) func() {
		in, out := make([]byte, 64<<10), make([]byte, 128<<10)
		lengths := []int{100, 200}
		mine := lengths[1-peer]
		blocks := []int{300, 300}
		oneWay := func() {
			must(c.Send(in[:20<<10], peer))
			must(c.Recv(out[:20<<10], peer))
		}
		if peer == 0 {
			oneWay = func() {
				must(c.Recv(out[:20<<10], peer))
				must(c.Send(in[:20<<10], peer))
			}
		}
		return func() {
			must(c.AllReduce(out[:64], in[:64], fabric.BF16, fabric.Sum))
			must(c.AllReduce(out[:64<<10], in, fabric.F32, fabric.Max))
			must(c.ReduceScatter(out[:1024], in[:2048], fabric.I32, fabric.Sum))
			must(c.AllGather(out, in))
			must(c.AllGatherV(out, in[:mine], 256, lengths))
			must(c.AllGatherRows(out[:2048], in[:1024], 64))
			must(c.Broadcast(out[:100], 0))
			must(c.AllToAll(out[:1000], in[:1000]))
			must(c.AllToAllV(out[:600], in[:600], blocks, blocks))
			must(c.Exchange(out[:10], in[:10], peer))
			oneWay()
			must(c.SendRecv(in[:10], peer, out[:10], peer))
			must(c.Barrier())
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run := calls(b, 0)
		for range rounds + 2 { // AllocsPerRun runs once before it counts
			run()
		}
	}()
	run := calls(a, 1)
	run()
	assert.Zero(t, testing.AllocsPerRun(rounds, run))
	<-done
	assert.NoError(t, a.Check())
}
