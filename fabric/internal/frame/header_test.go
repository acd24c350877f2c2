package frame

import (
	"encoding/hex"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var sample = Header{Session: 0x1122334455667788, Group: 0xaabbccdd, Class: fabric.Group, Op: fabric.AllReduce, DType: fabric.BF16,
	Reduce: fabric.Avg, Step: Result, Verify: true, Rank: NoRank, Seq: 812, Total: 4096, Hash: 7, Part: 3, Payload: 1024}

func TestGoldenBytes(t *testing.T) {
	var b [Size]byte
	sample.Put(&b)
	assert.Equal(t, "48464631ddccbbaa88776655443322112c0300000000000000100000000000000700000000000000000400000300000001010605010"+
		"1ffff0000000000000000", hex.EncodeToString(b[:]))
	got, err := Parse(&b)
	require.NoError(t, err)
	assert.Equal(t, sample, got)
}

func TestRoundTripIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom(fabric.Ops()).Draw(t, "op")
		h := Header{Op: op, Class: op.Class(), Session: rapid.Uint64().Draw(t, "session"), Group: rapid.Uint32().Draw(t, "group"),
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
		assert.Equal(t, i >= sumsAt, Equal(&a, &b), "byte %d", i)
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
		"magic":                  func(b *[Size]byte) { b[3] = '2' },
		"flags":                  func(b *[Size]byte) { b[53] = 2 },
		"sums without the flag":  func(b *[Size]byte) { b[53], b[63] = 0, 1 },
		"operation":              func(b *[Size]byte) { b[49] = 99 },
		"class":                  func(b *[Size]byte) { b[48] = uint8(fabric.Pair) },
		"dtype":                  func(b *[Size]byte) { b[50] = 0 },
		"avg of integers":        func(b *[Size]byte) { b[50] = uint8(fabric.I32) },
		"a move with a dtype":    func(b *[Size]byte) { b[49] = uint8(fabric.AllGather) },
		"a step there is not of": func(b *[Size]byte) { b[52] = 2 },
	} {
		var b [Size]byte
		sample.Put(&b)
		spoil(&b)
		_, err := Parse(&b)
		assert.Error(t, err, name)
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
