//go:build linux || darwin

package tcp

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// sent is what one rank puts on the wire for one peer.
type sent struct{ bytes, frames int }

// all is what rank 0 of world sends when every peer gets as much.
func all(world, payload, frames int) []sent {
	s := make([]sent, world-1)
	for i := range s {
		s[i] = sent{payload + 64*frames, frames}
	}
	return s
}

// The numbers are those of the cutting rule in docs/protocol.md, worked out by hand: n is the bytes of one block, for
// an all-reduce of its whole input.
func TestCallsAreCutIntoTheFramesOfTheProtocol(t *testing.T) {
	small := Config{EagerBytes: 1024, ChunkBytes: 256}
	for _, c := range []struct {
		op       fabric.Op
		config   Config
		world, n int
		want     []sent // by rank 0 to each other rank
	}{
		{fabric.AllReduce, small, 2, 1000, all(2, 1000, 1)}, // one frame, though longer than a chunk
		{fabric.AllReduce, small, 2, 1024, all(2, 1024, 1)},
		{fabric.AllReduce, small, 2, 1028, all(2, 512+516, 2)},    // direct: block 1, then the sum of block 0
		{fabric.AllReduce, small, 2, 8200, all(2, 4100+4100, 34)}, // twice 16 chunks and 4 bytes
		{fabric.AllReduce, small, 4, 1024, all(4, 1024, 1)},       // to every rank
		{fabric.AllReduce, small, 4, 8208, all(4, 2052+2052, 18)}, // twice 8 chunks and 4 bytes
		{fabric.AllReduce, small, 4, 16, all(4, 16, 1)},
		{fabric.AllReduce, Config{}, 2, 32 << 10, all(2, 32<<10, 1)}, // the default EagerBytes
		{fabric.AllReduce, Config{}, 2, 32<<10 + 8, all(2, 32<<10+8, 2)},
		// 257 elements in blocks of 65, 65, 65 and 62.
		{fabric.AllReduce, small, 4, 1028, []sent{{260 + 260 + 128, 2}, {260 + 260 + 128, 2}, {248 + 260 + 128, 2}}},

		{fabric.ReduceScatter, small, 2, 1024, all(2, 1024, 1)},
		{fabric.ReduceScatter, small, 2, 1028, all(2, 1028, 5)},
		{fabric.ReduceScatter, small, 4, 1024, all(4, 1024, 1)},
		{fabric.ReduceScatter, small, 4, 1028, all(4, 1028, 5)},

		{fabric.AllGather, small, 2, 1024, all(2, 1024, 1)},
		{fabric.AllGather, small, 2, 1028, all(2, 1028, 5)},
		{fabric.AllGather, small, 4, 1024, all(4, 1024, 1)},
		{fabric.AllGather, small, 4, 1280, all(4, 1280, 5)}, // chunks without a rest
		{fabric.AllGather, small, 4, 1281, all(4, 1281, 6)},
		{fabric.AllGather, Config{}, 2, 256 << 10, all(2, 256<<10, 1)}, // the default chunk
		{fabric.AllGather, Config{}, 2, 256<<10 + 1, all(2, 256<<10+1, 2)},
	} {
		t.Run(fmt.Sprintf("%v, %d ranks, %d bytes", c.op, c.world, c.n), func(t *testing.T) {
			ts := open(t, c.world, c.config)
			var wg sync.WaitGroup
			for _, tr := range ts {
				g := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
				wg.Go(func() { assert.NoError(t, callOnce(g, c.op, c.n)) })
			}
			wg.Wait()
			var got []sent
			for _, p := range ts[0].Stats().Peers {
				got = append(got, sent{int(p.SentBytes), int(p.SentFrames)})
				other := ts[p.Peer].Stats().Peers[0]
				assert.Equal(t, []uint64{p.SentBytes, p.SentFrames}, []uint64{other.ReceivedBytes, other.ReceivedFrames}, "as rank %d counts", p.Peer)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func callOnce(g *fabric.Collective, op fabric.Op, n int) error {
	large, block := make([]byte, n*g.World()), make([]byte, n)
	switch op {
	case fabric.AllReduce:
		return g.AllReduce(large[:n], block, fabric.F32, fabric.Sum)
	case fabric.ReduceScatter:
		return g.ReduceScatter(block, large, fabric.F32, fabric.Sum)
	default:
		return g.AllGather(large, block)
	}
}

// A peer that takes everything and brings nothing gets the window and no byte more, whatever its socket would hold.
func TestSendingStaysWithinTheWindowOfWhatArrived(t *testing.T) {
	const size, window = 4 << 20, 64 << 10
	g, peer := against(t, Config{Window: window})
	done := make(chan error, 1)
	out, in := make([]byte, size), make([]byte, size)
	go func() { done <- g.Exchange(out, in, 1) }()

	sentBytes := func() uint64 { return g.Stats().Transport.Peers[0].SentBytes }
	takes(t, peer, frame.Size+window)
	assert.EqualValues(t, frame.Size+window, sentBytes(), "nothing has come: a window")

	h := frame.Header{Binding: binding([16]byte{1, 2, 3}, "", "host"), Order: 1, Class: fabric.Pair, Op: fabric.Exchange, Rank: 0, Seq: 1, Total: size, Payload: DefaultChunkBytes}
	write(t, peer, h, false, make([]byte, DefaultChunkBytes))
	takes(t, peer, frame.Size+DefaultChunkBytes)
	assert.EqualValues(t, 2*frame.Size+DefaultChunkBytes+window, sentBytes(), "a chunk has come: as much, and a window")

	read := make(chan error, 1)
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(10*time.Second)))
	go func() {
		frames := size / DefaultChunkBytes
		_, err := io.CopyN(io.Discard, peer, int64(size+frames*frame.Size-2*frame.Size-DefaultChunkBytes-window))
		read <- err
	}()
	for part := 1; part < size/DefaultChunkBytes; part++ {
		h.Part = uint32(part)
		write(t, peer, h, false, make([]byte, DefaultChunkBytes))
	}
	assert.NoError(t, <-done)
	assert.NoError(t, <-read)
}

// takes reads n bytes and then, for a while, nothing.
func takes(t *testing.T, c net.Conn, n int) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := io.ReadFull(c, make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	more, err := c.Read(make([]byte, 1))
	assert.Zero(t, more, "a byte beyond the bound")
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
