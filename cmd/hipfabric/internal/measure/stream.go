package measure

import (
	"fmt"
	"math/rand/v2"

	"github.com/hipfabric/hipfabric/fabric"
)

// Stream makes calls that seed draws, the same on every rank, and checks each, until one fails: ErrWrong when it was the
// bytes. odd is the number of a call that this rank makes with other bytes than the rest do, -1 for none.
func Stream(c *fabric.Collective, seed uint64, odd int) error {
	source := rand.New(rand.NewPCG(seed, 1))
	ops := []fabric.Op{fabric.AllReduce, fabric.ReduceScatter, fabric.AllGather, fabric.AllGatherV, fabric.AllGatherRows, fabric.Broadcast,
		fabric.AllToAll, fabric.AllToAllV, fabric.SendRecv, fabric.Barrier}
	dtypes := []fabric.DType{fabric.F32, fabric.BF16}
	for i := 0; ; i++ {
		s := spec{op: ops[source.IntN(len(ops))], bytes: between(source, 1, 512<<10), dtype: dtypes[source.IntN(len(dtypes))], reduce: fabric.Sum, seed: source.Uint64()}
		if i == odd {
			s.op, s.bytes = fabric.AllReduce, s.bytes+64*c.World()
		}
		b, err := newBench(Subject{Host: c}, s)
		if err != nil {
			return err
		}
		wrong, err := b.check(i % 2)
		if err != nil {
			return err
		}
		if wrong != 0 {
			return fmt.Errorf("%w: %d elements of call %d, %v", ErrWrong, wrong, i, s)
		}
	}
}
