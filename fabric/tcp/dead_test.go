//go:build linux || darwin

package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

// againstLanes opens rank 0 of two with so many lanes; those of rank 1 are sockets in the test's hands.
func againstLanes(t *testing.T, lanes int, c Config) (*fabric.Collective, *Transport, []*net.TCPConn) {
	t.Helper()
	meshes := localMeshes(t, 2)
	meshes[0].alone = true
	c.Lanes, c.Logger = lanes, slog.New(slog.DiscardHandler)
	var tr *Transport
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { tr, err = Open(context.Background(), meshes[0], c) })
	peer := make([]*net.TCPConn, lanes)
	for i := range peer {
		var dialErr error
		peer[i], dialErr = meshes[1].Dial(context.Background(), 0, fabric.Lane{Channel: "host", Index: i})
		require.NoError(t, dialErr)
		require.NoError(t, peer[i].SetDeadline(time.Now().Add(20*time.Second)))
	}
	wg.Wait()
	require.NoError(t, err)
	g := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		g.Close()
		for _, p := range peer {
			p.Close()
		}
	})
	return g, tr, peer
}

// sent is a frame of a pair call of rank 1 to rank 0.
func sendFrame(order uint32, n int) frame.Header {
	return frame.Header{Binding: binding([16]byte{1, 2, 3}, "", "host"), Order: order, Class: fabric.Pair, Op: fabric.Send, Rank: 0,
		Seq: uint64(order), Total: uint64(n), Payload: uint32(n)}
}

// next reads one frame that rank 0 sent.
func next(t *testing.T, c net.Conn) (frame.Header, []byte) {
	t.Helper()
	var b [frame.Size]byte
	_, err := io.ReadFull(c, b[:])
	require.NoError(t, err)
	h, err := frame.Parse(&b)
	require.NoError(t, err)
	payload := make([]byte, h.Payload)
	_, err = io.ReadFull(c, payload)
	require.NoError(t, err)
	return h, payload
}

func notice(kind frame.Kind, part uint32, seq uint64, ack uint32) frame.Header {
	return frame.Header{Binding: binding([16]byte{1, 2, 3}, "", "host"), Kind: kind, Rank: frame.NoRank, Part: part, Seq: seq, Ack: ack}
}

// The acknowledgement that a dead lane had is said again on another one, though no call is in flight.
func TestAnAcknowledgementOutlivesItsLane(t *testing.T) {
	const n = keepMost + 8
	g, _, peer := againstLanes(t, 2, Config{EagerBytes: 1 << 20})
	write(t, peer[0], sendFrame(1, n), false, pattern(n))
	got := make([]byte, n)
	require.NoError(t, g.Recv(got, 1))
	assert.Equal(t, pattern(n), got)
	h, _ := next(t, peer[0])
	assert.Equal(t, notice(frame.Ack, 0, 0, 1), h)
	require.NoError(t, peer[0].Close())
	h, _ = next(t, peer[1])
	assert.Equal(t, notice(frame.Down, 0, 0, 1), h, "first of all the death")
	h, _ = next(t, peer[1])
	assert.Equal(t, notice(frame.Ack, 0, 0, 1), h)
}

// What a dead lane had taken, and may have lost, comes again: behind the notice that names it, with its own bytes.
func TestADeathIsNamedAheadOfWhatComesAgain(t *testing.T) {
	g, _, peer := againstLanes(t, 2, Config{})
	in := []byte("small enough to be copied")
	want := append([]byte(nil), in...)
	require.NoError(t, g.Send(in, 1))
	clear(in) // the caller's again
	h, payload := next(t, peer[0])
	assert.Equal(t, []any{frame.Data, uint32(1), want}, []any{h.Kind, h.Order, payload})
	require.NoError(t, peer[0].Close())
	h, _ = next(t, peer[1])
	assert.Equal(t, notice(frame.Down, 0, 0, 0), h)
	h, payload = next(t, peer[1])
	assert.Equal(t, []any{frame.Data, uint32(1), want}, []any{h.Kind, h.Order, payload})
}

// The end of a call with bytes that nobody copied waits for their acknowledgement.
func TestALargeSendEndsWithItsAcknowledgement(t *testing.T) {
	g, _, peer := againstLanes(t, 2, Config{})
	ended := make(chan error, 1)
	go func() { ended <- g.Send(make([]byte, 4*minChunkBytes), 1) }()
	var parts []uint32
	for len(parts) < 4 {
		for _, lane := range peer {
			require.NoError(t, lane.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
			var b [frame.Size]byte
			if _, err := io.ReadFull(lane, b[:]); err != nil {
				continue // what this lane had is read
			}
			h, err := frame.Parse(&b)
			require.NoError(t, err)
			require.NoError(t, lane.SetReadDeadline(time.Now().Add(20*time.Second)))
			_, err = io.CopyN(io.Discard, lane, int64(h.Payload))
			require.NoError(t, err)
			parts = append(parts, h.Part)
		}
	}
	assert.ElementsMatch(t, []uint32{0, 1, 2, 3}, parts)
	select {
	case err := <-ended:
		t.Fatalf("ended unacknowledged: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	write(t, peer[1], notice(frame.Ack, 0, 0, 1), false, nil)
	assert.NoError(t, <-ended)
}

// A large frame of a later call waits on its lane. Once a lane has died it is put aside, since what that one lost comes
// behind it.
func TestWhatADeadLaneLostIsReadPastALaterCall(t *testing.T) {
	const n = keepMost + 8
	g, tr, peer := againstLanes(t, 2, Config{EagerBytes: 1 << 20})
	write(t, peer[0], sendFrame(2, n), false, pattern(n))
	small := make([]byte, 16)
	first := make(chan error, 1)
	go func() { first <- g.Recv(small, 1) }()
	require.Eventually(t, func() bool { return tr.Stats().Peers[0].ReceivedBytes >= frame.Size }, 10*time.Second, time.Millisecond)
	require.NoError(t, peer[1].Close())
	h, _ := next(t, peer[0])
	assert.Equal(t, notice(frame.Down, 1, 0, 0), h)
	write(t, peer[0], notice(frame.Down, 1, 0, 0), false, nil)
	write(t, peer[0], sendFrame(1, 16), false, pattern(16))
	require.NoError(t, <-first)
	assert.Equal(t, pattern(16), small)
	large := make([]byte, n)
	require.NoError(t, g.Recv(large, 1))
	assert.Equal(t, pattern(n), large)
}

// While a lane is down more than the usual number is put aside: what it lost may stand behind any of it.
func TestALossIsFoundBehindManyFramesOfALaterCall(t *testing.T) {
	const parts = maxEarly + 50
	g, tr, peer := againstLanes(t, 2, Config{})
	require.NoError(t, peer[1].Close())
	h, _ := next(t, peer[0])
	assert.Equal(t, notice(frame.Down, 1, 0, 0), h)
	chunk, n := minChunkBytes, parts*minChunkBytes
	if cut, _ := tr.c.cut(n, 2); cut != chunk {
		chunk, n = cut, parts*cut
	}
	small, large, body := make([]byte, 16), make([]byte, n), pattern(chunk)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for part := range parts {
			h := sendFrame(2, n)
			h.Part, h.Payload = uint32(part), uint32(chunk)
			write(t, peer[0], h, false, body)
		}
		write(t, peer[0], sendFrame(1, 16), false, pattern(16))
		write(t, peer[0], notice(frame.Ack, 0, 0, 0), false, nil)
	}()
	require.NoError(t, g.Recv(small, 1))
	assert.Equal(t, pattern(16), small)
	require.NoError(t, g.Recv(large, 1))
	for part := range parts {
		require.True(t, bytes.Equal(body, large[part*chunk:][:chunk]), "part %d", part)
	}
	<-sent
}

// A part that comes a second time, behind a death, does not touch what the caller has by then.
func TestWhatComesTwiceIsDropped(t *testing.T) {
	g, _, peer := againstLanes(t, 2, Config{})
	write(t, peer[0], sendFrame(1, 16), false, pattern(16))
	got := make([]byte, 16)
	require.NoError(t, g.Recv(got, 1))
	write(t, peer[1], notice(frame.Down, 0, 0, 0), false, nil)
	write(t, peer[1], sendFrame(1, 16), false, make([]byte, 16))
	write(t, peer[1], sendFrame(2, 16), false, pattern(16))
	again := make([]byte, 16)
	require.NoError(t, g.Recv(again, 1))
	assert.Equal(t, pattern(16), again)
	assert.Equal(t, pattern(16), got)
	_, err := io.ReadAll(peer[0])
	assert.ErrorContains(t, err, "reset", "the lane that was named is closed, and what it still had to send is gone")
}

// A lane dialled anew names every other one that ever died, by the generation that did: what it carries may come before
// the peer has read of them elsewhere.
func TestALaneDialledAnewNamesTheOthersDeaths(t *testing.T) {
	_, tr, peer := againstLanes(t, 3, Config{})
	for i := range 2 {
		require.NoError(t, peer[i].Close())
		h, _ := next(t, peer[2])
		for h.Kind == frame.Ack {
			h, _ = next(t, peer[2])
		}
		assert.Equal(t, notice(frame.Down, uint32(i), 0, 0), h)
	}
	for i, others := range [][]uint32{{1}, {0}} {
		again, err := tr.mend.mesh.(*localMesh).dialBack(i, 1)
		require.NoError(t, err)
		defer again.Close()
		require.NoError(t, again.SetDeadline(time.Now().Add(20*time.Second)))
		for _, dead := range others {
			h, _ := next(t, again)
			assert.Equal(t, notice(frame.Down, dead, 0, 0), h)
		}
	}
}

// A notice of a later generation than the one that lives here is of that one's successor, which never came to life here.
func TestADeathOfALaterGenerationEndsTheEarlier(t *testing.T) {
	g, tr, peer := againstLanes(t, 2, Config{})
	write(t, peer[1], notice(frame.Down, 0, 3, 0), false, nil)
	write(t, peer[1], sendFrame(1, 16), false, pattern(16))
	require.NoError(t, g.Recv(make([]byte, 16), 1))
	require.True(t, tr.group.Tend(func() {
		l := tr.peers[1].lanes[0]
		assert.Nil(t, l.conn)
		assert.Equal(t, []int{3, 3}, []int{l.generation, l.died})
	}))
}

// What the lanes are looked after for between Begin and Wait belongs to the call.
func TestALookBetweenBeginAndWaitTakesNothingFromTheCall(t *testing.T) {
	g, tr, peer := againstLanes(t, 4, Config{})
	got := make([]byte, 16)
	started, err := g.Begin(fabric.Call{Op: fabric.Recv, From: 1, Out: got})
	require.NoError(t, err)
	require.True(t, tr.group.Tend(tr.mendAll))
	write(t, peer[3], sendFrame(1, 16), false, pattern(16))
	require.NoError(t, started.Wait())
	assert.Equal(t, pattern(16), got)
}

// A peer that sends notices without end keeps neither a call nor the end of the group from their turn.
func TestNoticesWithoutEndHoldNobodyUp(t *testing.T) {
	g, _, peer := againstLanes(t, 2, Config{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var b [frame.Size]byte
		h := notice(frame.Ack, 0, 0, 0)
		h.Put(&b)
		many := bytes.Repeat(b[:], 1000)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := peer[0].Write(many); err != nil {
					return
				}
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	write(t, peer[1], sendFrame(1, 16), false, pattern(16))
	require.NoError(t, g.Recv(make([]byte, 16), 1))
	ended := make(chan error, 1)
	go func() { ended <- g.Recv(make([]byte, 16), 1) }()
	g.Abort(errors.New("enough"))
	assert.ErrorIs(t, <-ended, fabric.ErrAborted)
	assert.NoError(t, g.Close())
}

// The end of the last lane ends a call that was begun and is not waited for yet.
func TestTheLastLaneEndsACallThatWasBegun(t *testing.T) {
	g, tr, peer := againstLanes(t, 2, Config{})
	started, err := g.Begin(fabric.Call{Op: fabric.Recv, From: 1, Out: make([]byte, 16)})
	require.NoError(t, err)
	for _, p := range peer {
		require.NoError(t, p.Close())
	}
	require.True(t, tr.group.Tend(func() {
		f := &tr.peers[1]
		for _, l := range f.lanes {
			_ = tr.bury(f, l, errors.New("given up"))
		}
	}))
	err = started.Wait()
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "no connection to rank 1 is left: lo0")
}

func TestAHostileNoticeEndsTheGroupByName(t *testing.T) {
	for name, h := range map[string]frame.Header{
		"lane 7 of generation 0":              notice(frame.Down, 7, 0, 0),
		"it said so on lane 0":                notice(frame.Down, 0, 0, 0),
		"generation 4294967296":               notice(frame.Down, 1, 1<<32, 0),
		"acknowledges call 9, and was sent 0": notice(frame.Ack, 0, 0, 9),
	} {
		g, _, peer := againstLanes(t, 2, Config{})
		write(t, peer[0], h, false, nil)
		err := g.Recv(make([]byte, 16), 1)
		assert.ErrorIs(t, err, fabric.ErrPeerFailed, name)
		assert.ErrorContains(t, err, name)
	}
}

// Frames of calls that are far off are put aside within bounds, and then stay where they are.
func TestFramesThatComeEarlyAreBounded(t *testing.T) {
	const many = maxEarly + 50
	g, tr, peer := againstLanes(t, 2, Config{})
	for order := uint32(2); order < 2+many; order++ {
		h := sendFrame(order, 8)
		write(t, peer[1], h, false, binary.LittleEndian.AppendUint64(nil, uint64(order)))
	}
	write(t, peer[0], sendFrame(1, 8), false, binary.LittleEndian.AppendUint64(nil, 1))
	for order := uint64(1); order < 2+many; order++ {
		b := make([]byte, 8)
		require.NoError(t, g.Recv(b, 1))
		require.Equal(t, order, binary.LittleEndian.Uint64(b))
		require.LessOrEqual(t, len(tr.peers[1].aside), maxEarly)
	}
	h := sendFrame(500, 8)
	h.Payload = 1 << 30
	write(t, peer[0], h, false, nil)
	err := g.Recv(make([]byte, 8), 1)
	assert.ErrorContains(t, err, "sent a frame of 1073741824 bytes; 262144 are the most")
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}
