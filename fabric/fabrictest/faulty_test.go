package fabrictest_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wire is a Mesh of two ranks with one connection, far the end of the rank that does not dial.
type wire struct{ far chan *net.TCPConn }

func (w wire) Rank() int    { return 1 }
func (w wire) World() int   { return 2 }
func (w wire) ID() [16]byte { return [16]byte{} }

func (w wire) Dial(ctx context.Context, _ int, _ fabric.Lane) (*net.TCPConn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, err
	}
	w.far <- far.(*net.TCPConn)
	return c.(*net.TCPConn), nil
}

func (w wire) Accept(context.Context, int, fabric.Lane) (*net.TCPConn, error) { return <-w.far, nil }
func (w wire) Rails(int) []fabric.Rail                                        { return []fabric.Rail{{SameHost: true}} }

// AllGather answers as the other rank would: it has as many lanes, and all of them stand.
func (w wire) AllGather(_ context.Context, blob []byte) ([][]byte, error) {
	theirs := blob
	if len(blob) > 2 {
		theirs = bytes.Repeat([]byte{0xff}, len(blob))
	}
	return [][]byte{theirs, theirs}, nil
}

// ends gives both ends of a connection through plan.
func ends(t *testing.T, plan ...fabrictest.Fault) (near, far *net.TCPConn) {
	t.Helper()
	m := fabrictest.Faulty(wire{make(chan *net.TCPConn, 1)}, plan...)
	near, err := m.Dial(t.Context(), 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	far, err = m.Accept(t.Context(), 0, fabric.Lane{Channel: "host"})
	require.NoError(t, err)
	t.Cleanup(func() {
		near.Close()
		far.Close()
		assert.NoError(t, m.Close())
		assert.NoError(t, m.Close())
	})
	deadline := time.Now().Add(20 * time.Second)
	require.NoError(t, near.SetDeadline(deadline))
	require.NoError(t, far.SetDeadline(deadline))
	return near, far
}

const sentence = "the quick brown fox jumps"

// through sends the sentence one way and gives what comes out before the end.
func through(t *testing.T, from, to *net.TCPConn) string {
	t.Helper()
	_, err := from.Write([]byte(sentence))
	require.NoError(t, err)
	require.NoError(t, from.CloseWrite())
	got, err := io.ReadAll(to)
	require.NoError(t, err)
	return string(got)
}

func TestFaultsHappenAtTheirByteOfTheirDirection(t *testing.T) {
	for offset := range int64(len(sentence)) {
		for _, inbound := range []bool{false, true} {
			near, far := ends(t,
				fabrictest.Fault{Kind: fabrictest.Drop, Peer: 0, Inbound: inbound, Offset: offset, Bytes: 2},
				fabrictest.Fault{Kind: fabrictest.Corrupt, Peer: -1, Inbound: inbound, Offset: offset + 3},
				fabrictest.Fault{Kind: fabrictest.Drop, Peer: 7, Inbound: inbound, Offset: 0})
			want := []byte(sentence)
			if int(offset)+3 < len(want) {
				want[offset+3] = ^want[offset+3]
			}
			want = append(want[:offset:offset], want[min(int(offset)+2, len(want)):]...)
			spoilt, good := through(t, near, far), through(t, far, near)
			if inbound {
				spoilt, good = good, spoilt
			}
			assert.Equal(t, string(want), spoilt, "offset %d", offset)
			assert.Equal(t, sentence, good, "offset %d, the other way", offset)
		}
	}
}

func TestADropWithoutALengthLosesTheRest(t *testing.T) {
	near, far := ends(t, fabrictest.Fault{Kind: fabrictest.Drop, Peer: 0, Offset: 4})
	assert.Equal(t, sentence[:4], through(t, near, far))
}

func TestACutResetsBothEnds(t *testing.T) {
	near, far := ends(t, fabrictest.Fault{Kind: fabrictest.Cut, Peer: 0, Offset: 4})
	_, err := near.Write([]byte(sentence))
	require.NoError(t, err)
	_, err = io.ReadAll(far)
	assert.Error(t, err, "the far end is reset, not ended")
	_, err = io.ReadAll(near)
	assert.Error(t, err, "the near end is reset, not ended")
}

func TestADelayHoldsBytesUntilItIsLifted(t *testing.T) {
	lift := make(chan struct{})
	near, far := ends(t, fabrictest.Fault{Kind: fabrictest.Delay, Peer: 0, Offset: 4, Until: lift})
	_, err := near.Write([]byte(sentence))
	require.NoError(t, err)
	got := make([]byte, len(sentence))
	_, err = io.ReadFull(far, got[:4])
	require.NoError(t, err)
	require.NoError(t, far.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = far.Read(got[4:])
	require.ErrorContains(t, err, "timeout")
	close(lift)
	require.NoError(t, far.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err = io.ReadFull(far, got[4:])
	require.NoError(t, err)
	assert.Equal(t, sentence, string(got))
}

func TestCloseEndsADelay(t *testing.T) {
	near, _ := ends(t, fabrictest.Fault{Kind: fabrictest.Delay, Peer: 0, For: time.Hour})
	_, err := near.Write([]byte(sentence))
	require.NoError(t, err)
}
