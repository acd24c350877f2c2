package bootstrap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestAFrameIsBoundToItsBytesPlaceAndDirection(t *testing.T) {
	key := make([]byte, 32)
	frame := func() []byte { return newSeal(key, fromDialer).append(nil, frameMessage, []byte("hello")) }
	_, payload, n, err := newSeal(key, fromDialer).open(frame())
	require.NoError(t, err)
	assert.Equal(t, "hello", string(payload))
	assert.Equal(t, frameHeader+5+frameMAC, n)
	for at := range frame() {
		b := frame()
		b[at] ^= 1
		_, _, n, err := newSeal(key, fromDialer).open(b)
		assert.True(t, err != nil || n == 0, "byte %d", at)
		if at >= 4 {
			assert.ErrorIs(t, err, errFrame, "byte %d", at)
		}
	}
	_, _, _, err = newSeal(key, fromListener).open(frame())
	assert.ErrorIs(t, err, errFrame, "reflected")
	s := newSeal(key, fromDialer)
	_, _, _, err = s.open(frame())
	require.NoError(t, err)
	_, _, _, err = s.open(frame())
	assert.ErrorIs(t, err, errFrame, "repeated")
}

func TestAHostileLengthIsRefusedBeforeItIsBelieved(t *testing.T) {
	b := make([]byte, frameHeader)
	b[4] = byte(frameMessage)
	for _, n := range []uint32{maxPayload + 1, 1 << 31, 1<<32 - 1} {
		binary.LittleEndian.PutUint32(b, n)
		s := newSeal(make([]byte, 32), fromDialer)
		_, _, _, err := s.open(b)
		assert.ErrorIs(t, err, errFrame)
		assert.ErrorContains(t, err, "at most 262208")
		_, _, err = readFrame(bytes.NewReader(b), s)
		assert.ErrorIs(t, err, errFrame)
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	rank := rapid.IntRange(-1, 63)
	rapid.Check(t, func(t *rapid.T) {
		c := &fabric.Cause{Kind: rapid.SampledFrom(kinds[1:]).Draw(t, "kind"), Peer: rank.Draw(t, "peer"), From: rank.Draw(t, "from"),
			Part: rapid.Uint32().Draw(t, "part"), Text: clip(rapid.String().Draw(t, "text"))}
		got, err := decodeCause(encodeCause(c))
		require.NoError(t, err)
		require.Equal(t, c, got)

		p := fabric.Progress{Running: rapid.Bool().Draw(t, "running"), Op: fabric.Op(rapid.Byte().Draw(t, "op")), Class: fabric.Pair, Seq: rapid.Uint64().Draw(t, "seq"),
			Bytes: rapid.Int().Draw(t, "bytes"), Peer: rank.Draw(t, "peer"), Age: time.Duration(rapid.Int64().Draw(t, "age")),
			Waiting: rapid.Uint64().Draw(t, "waiting"), Calls: rapid.Uint64().Draw(t, "calls"), GroupSeq: rapid.Uint64().Draw(t, "group"),
			Group: rapid.StringMatching(`[a-z/.0-9]{0,64}`).Draw(t, "name")}
		b := encodeProgress(p)
		back, err := decodeProgress(b)
		require.NoError(t, err)
		require.Equal(t, p, back)

		call := fabric.Record{Seq: rapid.Uint64().Draw(t, "number"), Op: fabric.Op(rapid.Byte().Draw(t, "call")), Bytes: rapid.Int().Draw(t, "size"),
			Peer: rank.Draw(t, "to"), DType: fabric.DType(rapid.Byte().Draw(t, "dtype")), Reduce: fabric.ReduceOp(rapid.Byte().Draw(t, "reduce")),
			Hash: rapid.Uint64().Draw(t, "hash"), State: fabric.State(rapid.Byte().Draw(t, "state")), Begun: time.Unix(0, rapid.Int64().Draw(t, "begun")),
			Queued: time.Duration(rapid.Int64().Draw(t, "queued")), Took: time.Duration(rapid.Int64().Draw(t, "took"))}
		calls, err := decodeRecords(encodeRecords([]fabric.Record{call}))
		require.NoError(t, err)
		require.Equal(t, []fabric.Record{call}, calls)

		text := rapid.StringMatching(`[a-z]{1,20}`)
		j := joining{world: 3, group: text.Draw(t, "group"), settings: []Setting{{text.Draw(t, "name"), text.Draw(t, "value")}},
			place: place{host: text.Draw(t, "host"), boot: 1, net: 2, from: anAddr(t), met: anAddr(t),
				listen: []address{{at: netip.AddrPortFrom(anAddr(t), 7), bits: rapid.IntRange(0, 32).Draw(t, "bits"), device: text.Draw(t, "device"), cable: rapid.Bool().Draw(t, "cable")}}}}
		backJ, err := decodeJoining(j.encode())
		require.NoError(t, err)
		require.Equal(t, j, backJ)
		places, err := decodePlaces(encodePlaces([]place{j.place, {host: "x"}}))
		require.NoError(t, err)
		require.Equal(t, []place{j.place, {host: "x"}}, places)
	})
}

func anAddr(t *rapid.T) netip.Addr {
	if n := rapid.Uint32().Draw(t, "addr"); n%2 == 0 {
		return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return netip.AddrFrom16([16]byte{0xfd, 15: rapid.Byte().Draw(t, "last")})
}

func TestALongTextIsClippedAtACharacter(t *testing.T) {
	long := string(bytes.Repeat([]byte("é"), maxText))
	got := clip("x" + long)
	assert.Len(t, got, maxText-1)
	assert.True(t, len(got) <= maxText)
}

// The largest table, and the largest join, must fit a frame.
func TestTheLargestMessagesFitAFrame(t *testing.T) {
	text := string(make([]byte, maxValue))
	p := place{host: text}
	for range maxListen {
		p.listen = append(p.listen, address{at: netip.AddrPortFrom(netip.IPv6Unspecified(), 1), bits: 128, device: text[:maxDevice]})
	}
	places := make([]place, fabric.MaxWorld)
	for i := range places {
		places[i] = p
	}
	assert.LessOrEqual(t, len(encodePlaces(places)), maxPayload)
	_, err := decodePlaces(encodePlaces(places))
	assert.NoError(t, err)
	j := joining{group: text[:maxName], place: p}
	for range maxSettings + 3 {
		j.settings = append(j.settings, Setting{text[:maxName], text})
	}
	assert.LessOrEqual(t, len(j.encode()), maxPayload)
	_, err = decodeJoining(j.encode())
	assert.NoError(t, err)
	gather := contribution{label: text + text, blob: make([]byte, MaxBlob)}
	assert.LessOrEqual(t, len(gather.encode()), maxPayload)
}
