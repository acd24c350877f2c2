package hipfabric_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// A world of one needs nobody; two ranks would differ in Rank, World and Master alone.
func ExampleOpen() {
	ctx := context.Background()
	group, err := hipfabric.Open(ctx, hipfabric.Config{World: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := []float32{1, 2}
	err = group.Host().AllReduce(fabric.Bytes(x), fabric.Bytes(x), fabric.F32, fabric.Sum)
	fmt.Println(x, err, group.Close(ctx))
	// Output: [1 2] <nil> <nil>
}

func ExampleOpen_invalid() {
	_, err := hipfabric.Open(context.Background(), hipfabric.Config{World: 2, Master: "node0:9000", EagerBytes: -1})
	fmt.Println(err)
	fmt.Println(errors.Is(err, fabric.ErrInvalid))
	// Output:
	// fabric: open, rank 0: invalid: EagerBytes is -1; 1 to 16777216, or 0 for 32768
	// true
}
