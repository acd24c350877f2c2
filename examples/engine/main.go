// Command engine is a small tensor-parallel inference engine: rank 0 leads, the others follow. Alone it is a world of
// one; `hipfabric run -n 4 -- engine` makes it four ranks, with the same tokens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

func main() {
	log.SetFlags(0)
	var w work
	flag.BoolVar(&w.bf16, "bf16", false, "weights and wire in bf16 instead of f32")
	flag.BoolVar(&w.random, "random", false, "random weights instead of small integers")
	flag.IntVar(&w.requests, "requests", 4, "batches to decode")
	flag.IntVar(&w.batch, "batch", 8, "sequences in a batch")
	flag.IntVar(&w.steps, "steps", 16, "tokens to decode a sequence")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, w)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w work) error {
	cfg, err := hipfabric.FromEnv()
	if errors.Is(err, launch.ErrNone) {
		cfg = hipfabric.Config{World: 1}
	} else if err != nil {
		return err
	}
	group, err := hipfabric.Open(ctx, cfg)
	if err != nil {
		return err
	}
	// A call takes no context: the group's end is what ends it.
	defer context.AfterFunc(ctx, func() { group.Abort(context.Cause(ctx)) })()
	_, report, err := serve(ctx, group.Host(), group.Control(), w)
	if err == nil && group.Rank() == 0 {
		fmt.Println(report)
	}
	return errors.Join(err, group.Close(context.WithoutCancel(ctx)))
}
