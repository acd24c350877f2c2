package fabric

import "fmt"

// DType is the type of the numbers that a reduction combines. Its value travels in frame headers and never changes.
type DType uint8

const (
	U8 DType = iota + 1
	I8
	I32
	I64
	F16
	BF16
	F32
	F64
)

var dtypes = [...]struct {
	name  string
	size  int
	float bool
}{
	U8: {"u8", 1, false}, I8: {"i8", 1, false}, I32: {"i32", 4, false}, I64: {"i64", 8, false},
	F16: {"f16", 2, true}, BF16: {"bf16", 2, true}, F32: {"f32", 4, true}, F64: {"f64", 8, true},
}

// DTypes lists every dtype in order of value.
func DTypes() []DType { return []DType{U8, I8, I32, I64, F16, BF16, F32, F64} }

// Valid says whether d is one of the dtypes above.
func (d DType) Valid() bool { return d >= U8 && d <= F64 }

// Size is the bytes of one element; 0 for an invalid dtype.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// Float says whether d is a floating-point type, the only ones that Avg takes.
func (d DType) Float() bool { return d.Valid() && dtypes[d].float }

func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ReduceOp is how a reduction combines. Its value travels in frame headers and never changes.
type ReduceOp uint8

const (
	Sum ReduceOp = iota + 1
	Prod
	Max
	Min
	Avg // the sum divided by world, for floats
)

var reduceNames = [...]string{Sum: "sum", Prod: "prod", Max: "max", Min: "min", Avg: "avg"}

// ReduceOps lists every reduction in order of value.
func ReduceOps() []ReduceOp { return []ReduceOp{Sum, Prod, Max, Min, Avg} }

// Valid says whether r is one of the reductions above.
func (r ReduceOp) Valid() bool { return r >= Sum && r <= Avg }

// Takes says whether r is defined for d: every reduction for every dtype, but Avg for floats only.
func (r ReduceOp) Takes(d DType) bool { return r.Valid() && d.Valid() && (r != Avg || d.Float()) }

func (r ReduceOp) String() string {
	if !r.Valid() {
		return fmt.Sprintf("reduction(%d)", uint8(r))
	}
	return reduceNames[r]
}
