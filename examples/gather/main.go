// Command gather is the smallest program of a group: every rank contributes its number, and all see all of them. Start
// it with: hipfabric run -n 4 -- gather
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/hipfabric/hipfabric"
)

func main() {
	if err := gather(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func gather(ctx context.Context) error {
	cfg, err := hipfabric.FromEnv() // who am I: `hipfabric run` says so
	if err != nil {
		return err
	}
	group, err := hipfabric.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = group.Close(ctx) }() // says goodbye; after a failure, waits until it is on record
	in, out := []byte{byte(group.Rank())}, make([]byte, group.World())
	if err := group.Host().AllGather(out, in); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d sees %v\n", group.Rank(), group.World(), out)
	return nil
}
