package frame

import (
	"encoding/hex"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var sample = Header{Binding: 0x1122334455667788, Order: 0xaabbccdd, Ack: 0x01020304, Class: fabric.Group, Op: fabric.AllReduce, DType: fabric.BF16,
	Reduce: fabric.Avg, Step: Result, Verify: true, Rank: NoRank, Seq: 812, Total: 4096, Hash: 7, Part: 3, Payload: 1024}

func TestGoldenBytes(t *testing.T) {
	var b [Size]byte
	sample.Put(&b)
	assert.Equal(t, "46320106050"+"6ffff8877665544332211"+"ddccbbaa04030201"+"2c03000000000000"+"0010000000000000"+"0700000000000000"+
		"0300000000040000"+"0000000000000000", hex.EncodeToString(b[:]))
	got, err := Parse(&b)
	require.NoError(t, err)
	assert.Equal(t, sample, got)
	kind, order, step, part, payload := Peek(&b)
	assert.Equal(t, []any{Data, sample.Order, Result, sample.Part, sample.Payload}, []any{kind, order, step, part, payload})
	assert.Equal(t, sample.Ack, AckOf(&b))
	SetAck(&b, 9)
	got, err = Parse(&b)
	require.NoError(t, err)
	want := sample
	want.Ack = 9
	assert.Equal(t, want, got, "and nothing else")
}

func TestNoticesAreToldFromCalls(t *testing.T) {
	for _, h := range []Header{{Kind: Ack, Binding: 3, Ack: 7, Rank: NoRank}, {Kind: Down, Binding: 3, Ack: 7, Part: 2, Seq: 5, Rank: NoRank, Verify: true}} {
		var b [Size]byte
		h.Put(&b)
		got, err := Parse(&b)
		require.NoError(t, err)
		assert.Equal(t, h, got)
		for name, spoil := range map[string]func(){
			"an order": func() { b[16] = 1 }, "an operation": func() { b[2] = 1 }, "a payload": func() { b[52] = 1 }, "a pair's class": func() { b[5] |= 1 },
			"a rank": func() { b[6] = 0 }, "a total": func() { b[32] = 1 }, "a step": func() { b[5] |= 2 }, "an unknown kind": func() { b[5] |= 3 << 3 },
		} {
			h.Put(&b)
			spoil()
			_, err := Parse(&b)
			assert.Error(t, err, "kind %d with %s", h.Kind, name)
		}
	}
}

func TestRoundTripIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom(fabric.Ops()).Draw(t, "op")
		h := Header{Op: op, Class: op.Class(), Binding: rapid.Uint64().Draw(t, "binding"), Order: rapid.Uint32().Draw(t, "order"), Ack: rapid.Uint32().Draw(t, "ack"),
			Step: Step(rapid.IntRange(0, 1).Draw(t, "step")), Verify: rapid.Bool().Draw(t, "verify"), Rank: rapid.Uint16().Draw(t, "rank"),
			Seq: rapid.Uint64().Draw(t, "seq"), Total: rapid.Uint64().Draw(t, "total"), Hash: rapid.Uint64().Draw(t, "hash"),
			Part: rapid.Uint32().Draw(t, "part"), Payload: rapid.Uint32().Draw(t, "payload")}
		if op.Reduces() {
			h.DType, h.Reduce = fabric.F32, rapid.SampledFrom(fabric.ReduceOps()).Draw(t, "reduce")
		}
		var b [Size]byte
		h.Put(&b)
		got, err := Parse(&b)
		if err != nil || got != h {
			t.Fatalf("%+v came back as %+v, %v", h, got, err)
		}
	})
}

func TestEveryByteCounts(t *testing.T) {
	var a [Size]byte
	sample.Put(&a)
	payload := []byte("some payload")
	Seal(&a, payload)
	for i := range a {
		b := a
		b[i] ^= 0x10
		assert.Equal(t, i >= sumsAt || i >= ackAt && i < ackAt+4, Equal(&a, &b), "byte %d", i)
		assert.False(t, HeaderIntact(&b), "byte %d", i)
	}
	assert.True(t, HeaderIntact(&a))
	assert.True(t, PayloadIntact(&a, payload))
	for i := range payload {
		payload[i] ^= 1
		assert.False(t, PayloadIntact(&a, payload), "payload byte %d", i)
		payload[i] ^= 1
	}
}

func TestParseRefusesWhatNobodyWrites(t *testing.T) {
	for name, spoil := range map[string]func(b *[Size]byte){
		"magic":                func(b *[Size]byte) { b[1] = '3' },
		"bits":                 func(b *[Size]byte) { b[5] |= 0x20 },
		"sums without the bit": func(b *[Size]byte) { b[5], b[63] = b[5]&^4, 1 },
		"operation":            func(b *[Size]byte) { b[2] = 99 },
		"class":                func(b *[Size]byte) { b[5] |= 1 },
		"dtype":                func(b *[Size]byte) { b[3] = 0 },
		"avg of integers":      func(b *[Size]byte) { b[3] = uint8(fabric.I32) },
		"a move with a dtype":  func(b *[Size]byte) { b[2] = uint8(fabric.AllGather) },
	} {
		var b [Size]byte
		sample.Put(&b)
		spoil(&b)
		_, err := Parse(&b)
		assert.Error(t, err, name)
	}
}

func TestDescribeNamesWhatTheHashIsOf(t *testing.T) {
	const hash, part = 0x1234567890abcdef, 3
	for want, h := range map[string]Header{
		"all-gather-v seq 7, 9 bytes, lengths 0x1234567890abcdef":       {Op: fabric.AllGatherV, Hash: hash},
		"all-gather-rows seq 7, 9 bytes, rows of 5":                     {Op: fabric.AllGatherRows, Hash: 5},
		"all-gather-rows seq 7, 9 bytes, rows of 5, part 3 of the call": {Op: fabric.AllGatherRows, Hash: 5 | part<<fabric.HashPartShift},
		"all-gather seq 7, 9 bytes, part 3 of the call":                 {Op: fabric.AllGather, Hash: part << fabric.HashPartShift},
		"all-gather seq 7, 9 bytes, hash 0x5":                           {Op: fabric.AllGather, Hash: 5},
		"all-gather seq 7, 9 bytes":                                     {Op: fabric.AllGather},
	} {
		h.Seq, h.Total = 7, 9
		assert.Equal(t, want, h.Describe())
	}
}

func FuzzParse(f *testing.F) {
	var b [Size]byte
	sample.Put(&b)
	f.Add(b[:])
	f.Add(make([]byte, Size))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: stranger\r\nAccept: */*\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < Size {
			return
		}
		b := [Size]byte(in)
		h, err := Parse(&b)
		if err != nil {
			return
		}
		var again [Size]byte
		h.Put(&again)
		if !Equal(&again, &b) {
			t.Fatalf("% x parsed and came back as % x", b, again)
		}
		_ = h.Describe()
	})
}
