package fabric_test

import (
	"errors"
	"io"
	"math"
	"os"
	"sync/atomic"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorTexts(t *testing.T) {
	reset := &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: 2, From: 0, Text: "connection reset by peer"}
	for want, e := range map[string]*fabric.OpError{
		"fabric: all-gather seq 812 part 3, rank 1, peer 2 over tcp: peer failed: connection reset by peer": {
			Op: "all-gather", Path: "tcp", Group: fabric.DefaultGroup, Rank: 1, Peer: 2, From: 0, Seq: 812, Part: 3, Err: reset},
		`fabric: barrier seq 1, rank 0 over tcp in group "tp": aborted: enough (this rank saw: timeout: nothing moved)`: {
			Op: "barrier", Path: "tcp", Group: "tp", Peer: -1, From: 1, Seq: 1,
			Err: &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: 1, Text: "enough"}, Local: timeout(1, "nothing moved")},
		"fabric: open, rank 3: invalid: Timeout is -5ns; 0 or more is needed": {
			Op: "open", Rank: 3, Peer: -1, From: -1, Err: fabric.Invalidf("Timeout is %v; 0 or more is needed", "-5ns")},
		"fabric: split, rank 0: unsupported: this path has none": {
			Op: "split", Peer: -1, From: -1, Err: fabric.Unsupportedf("this path has none")},
		"fabric: barrier, rank 0 over tcp: closed": {
			Op: "barrier", Path: "tcp", Peer: -1, From: -1, Err: fabric.ErrClosed},
	} {
		assert.Equal(t, want, e.Error())
	}
}

func TestSentinelsAreTheStandardLibrarysToo(t *testing.T) {
	for ours, theirs := range map[error]error{
		fabric.ErrUnsupported: errors.ErrUnsupported, fabric.ErrTimeout: os.ErrDeadlineExceeded, fabric.ErrClosed: os.ErrClosed,
	} {
		assert.ErrorIs(t, ours, theirs)
		assert.ErrorIs(t, &fabric.OpError{Err: ours}, theirs)
	}
	assert.NotErrorIs(t, fabric.ErrAborted, os.ErrClosed)
	for _, wider := range []error{fabric.ErrUnsupported, errors.ErrUnsupported} {
		assert.ErrorIs(t, fabric.ErrCapture, wider)
		assert.ErrorIs(t, &fabric.OpError{Err: &fabric.Cause{Kind: fabric.ErrCapture}}, wider)
	}
	assert.NotErrorIs(t, fabric.ErrUnsupported, fabric.ErrCapture)
	assert.NotErrorIs(t, fabric.ErrDevice, errors.ErrUnsupported)
	assert.ErrorIs(t, fabric.Unsupportedf("x"), errors.ErrUnsupported)
}

func TestScopeSaysWhetherToGoOn(t *testing.T) {
	for _, kind := range []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrCapture, fabric.ErrClosed} {
		assert.Equal(t, "call", (&fabric.OpError{Err: kind}).Scope().String())
	}
	for _, kind := range []error{fabric.ErrMismatch, fabric.ErrDesync, fabric.ErrPeerFailed, fabric.ErrTimeout, fabric.ErrAborted} {
		e := &fabric.OpError{Err: &fabric.Cause{Kind: kind}}
		assert.Equal(t, "group", e.Scope().String())
		assert.Equal(t, kind == fabric.ErrTimeout, e.Timeout())
		assert.NotContains(t, e.Error(), "may still be written")
	}
	device := &fabric.OpError{Op: "wait", Err: &fabric.Cause{Kind: fabric.ErrDevice, Text: "hipMemcpyAsync: 700"}}
	assert.Equal(t, "device", device.Scope().String())
	assert.ErrorContains(t, device, "hipMemcpyAsync: 700; buffers of this group's calls may still be written until the device has synchronised")
}

func TestCauseOfFindsOrMakesACause(t *testing.T) {
	c := &fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: 0, Text: "x", Err: io.EOF}
	assert.Same(t, c, fabric.CauseOf(&fabric.OpError{Err: c}))
	assert.ErrorIs(t, c, io.EOF)
	assert.Equal(t, "desync: x", c.Error())
	assert.Equal(t, "desync", (&fabric.Cause{Kind: fabric.ErrDesync}).Error())
	assert.Equal(t, &fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: -1, Text: "EOF", Err: io.EOF}, fabric.CauseOf(io.EOF))
}

// These values travel in frame headers: a change breaks every older rank.
func TestValuesOnTheWireStay(t *testing.T) {
	var ops, dtypes, reductions []string
	for i, op := range fabric.Ops() {
		assert.EqualValues(t, i+1, op)
		assert.True(t, op.Valid())
		ops = append(ops, op.String())
	}
	for i, dt := range fabric.DTypes() {
		assert.EqualValues(t, i+1, dt)
		dtypes = append(dtypes, dt.String())
	}
	for i, r := range fabric.ReduceOps() {
		assert.EqualValues(t, i+1, r)
		reductions = append(reductions, r.String())
	}
	assert.Equal(t, []string{"all-reduce", "reduce-scatter", "all-gather", "all-gather-v", "all-gather-rows", "broadcast", "all-to-all",
		"all-to-all-v", "exchange", "send-recv", "send", "recv", "barrier"}, ops)
	assert.Equal(t, []string{"u8", "i8", "i32", "i64", "f16", "bf16", "f32", "f64"}, dtypes)
	assert.Equal(t, []string{"sum", "prod", "max", "min", "avg"}, reductions)
	assert.Equal(t, []string{"op(0)", "op(14)", "dtype(0)", "dtype(9)", "reduction(0)", "reduction(6)", "class(0)"},
		[]string{fabric.Op(0).String(), fabric.Op(14).String(), fabric.DType(0).String(), fabric.DType(9).String(),
			fabric.ReduceOp(0).String(), fabric.ReduceOp(6).String(), fabric.Class(0).String()})
	assert.Equal(t, []string{"group", "pair"}, []string{fabric.Group.String(), fabric.Pair.String()})
}

func TestDTypesAndWhatReductionsTake(t *testing.T) {
	sizes := map[fabric.DType]int{fabric.U8: 1, fabric.I8: 1, fabric.I32: 4, fabric.I64: 8, fabric.F16: 2, fabric.BF16: 2, fabric.F32: 4,
		fabric.F64: 8, 0: 0, 9: 0}
	for dt, size := range sizes {
		assert.Equal(t, size, dt.Size(), dt)
		assert.Equal(t, dt >= fabric.F16 && dt <= fabric.F64, dt.Float(), dt)
		assert.Equal(t, dt.Float(), fabric.Avg.Takes(dt), dt)
		assert.Equal(t, size > 0, fabric.Sum.Takes(dt), dt)
		assert.False(t, fabric.ReduceOp(0).Takes(dt))
	}
	for _, op := range fabric.Ops() {
		assert.Equal(t, op == fabric.AllReduce || op == fabric.ReduceScatter, op.Reduces(), op)
		pair := op == fabric.Exchange || op == fabric.SendRecv || op == fabric.Send || op == fabric.Recv
		assert.Equal(t, pair, op.Class() == fabric.Pair, op)
	}
}

func TestBytesViewsNumbers(t *testing.T) {
	f := []float32{1, 2}
	b := fabric.Bytes(f)
	assert.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, b)
	b[7] = 0xc0
	assert.Equal(t, float32(-2), f[1], "one memory")
	assert.Len(t, fabric.Bytes([]float64{math.Pi}), 8)
	assert.Nil(t, fabric.Bytes([]int32{}))
	assert.Nil(t, fabric.Bytes[uint8](nil))
}

func TestWordsViewsBytesThatAreWords(t *testing.T) {
	b := fabric.Bytes([]uint64{1, 2, 3})
	w, err := fabric.Words(b[8:])
	require.NoError(t, err)
	assert.Equal(t, []uint64{2, 3}, w)
	atomic.StoreUint64(&w[1], 7)
	assert.EqualValues(t, 7, b[16], "one memory")
	for _, none := range [][]byte{nil, b[3:3]} {
		w, err = fabric.Words(none)
		assert.NoError(t, err)
		assert.Empty(t, w)
	}
	_, err = fabric.Words(b[:12])
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "12 bytes")
	_, err = fabric.Words(b[4:20])
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "an address that is a multiple of 8 is needed")
}
