//go:build linux || darwin

package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// The sum of a chunk goes out before the next chunk has come.
func TestSumsOverlapReception(t *testing.T) {
	const chunk, n = 64, 8 * 64 // of each rank's block: four chunks
	g, peer := against(t, Config{EagerBytes: 16, ChunkBytes: chunk})
	ended := make(chan error, 1)
	in, out := make([]int32, n/4), make([]int32, n/4)
	for i := range in {
		in[i] = int32(i)
	}
	go func() { ended <- g.AllReduce(fabric.Bytes(out), fabric.Bytes(in), fabric.I32, fabric.Sum) }()
	h := frame.Header{Binding: binding([16]byte{1, 2, 3}, "", "host"), Order: 1, Class: fabric.Group, Op: fabric.AllReduce,
		DType: fabric.I32, Reduce: fabric.Sum, Rank: frame.NoRank, Seq: 1, Total: n, Payload: chunk}
	for part := range uint32(4) { // what rank 0 brings to rank 1's block
		got, _ := next(t, peer)
		assert.Equal(t, []any{frame.Contribution, part}, []any{got.Step, got.Part})
	}
	theirs := make([]int32, chunk/4)
	for part := range uint32(4) {
		for i := range theirs {
			theirs[i] = 1000 * int32(part+1)
		}
		h.Part, h.Step = part, frame.Contribution
		write(t, peer, h, false, fabric.Bytes(theirs))
		got, sum := next(t, peer)
		require.Equal(t, []any{frame.Result, part}, []any{got.Step, got.Part}, "before any more has come")
		want := make([]int32, chunk/4)
		for i := range want {
			want[i] = int32(int(part)*chunk/4+i) + theirs[i]
		}
		assert.Equal(t, fabric.Bytes(want), sum)
	}
	for part := range uint32(4) {
		h.Part, h.Step = part, frame.Result
		write(t, peer, h, false, make([]byte, chunk))
	}
	assert.NoError(t, <-ended)
}

// A peer that does not come keeps neither the others' bytes nor this rank's own from their places.
func TestPeersAndTheOwnBlockDoNotWaitForEachOther(t *testing.T) {
	const n = 300_000
	ts := open(t, 3, Config{})
	g := fabric.New(ts[0], fabric.Options{})
	other := fabric.New(ts[1], fabric.Options{})
	out, in := make([]byte, 3*n), pattern(n)
	started, err := g.Begin(fabric.Call{Op: fabric.AllGather, In: in, Out: out})
	require.NoError(t, err)
	theirs, err := other.Begin(fabric.Call{Op: fabric.AllGather, In: in, Out: make([]byte, 3*n)})
	require.NoError(t, err)
	for range 100_000 {
		for _, s := range []fabric.Started{started, theirs} {
			done, err := s.Poll()
			require.NoError(t, err)
			require.False(t, done, "rank 2 has not come")
		}
		if string(out[:n]) == string(in) && string(out[n:2*n]) == string(in) {
			return
		}
	}
	t.Fatal("rank 0 waits for rank 2 before it takes what is there")
}

// Small calls keep to one lane while it is idle: the others' connections stay cold.
func TestSmallCallsStayOnOneLane(t *testing.T) {
	ts := openEach(t, func(m *localMesh) Mesh { m.rails = 3; return m }, Config{Lanes: 3, Yield: true}, Config{Lanes: 3, Yield: true})
	ended := make(chan error, 2)
	for _, tr := range ts {
		c := fabric.New(tr, fabric.Options{})
		go func() {
			var err error
			for range 100 {
				if err = c.AllGather(make([]byte, 32), make([]byte, 16)); err != nil {
					break
				}
			}
			ended <- err
		}()
	}
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	rails := ts[0].Stats().Peers[0].Rails
	assert.EqualValues(t, 100, rails[0].SentFrames)
	assert.Zero(t, rails[1].SentFrames+rails[2].SentFrames)
}
