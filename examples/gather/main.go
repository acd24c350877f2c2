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
	ctx := context.Background()
	cfg, err := hipfabric.FromEnv() // who am I: `hipfabric run` says so
	check(err)
	group, err := hipfabric.Open(ctx, cfg)
	check(err)
	in, out := []byte{byte(group.Rank())}, make([]byte, group.World())
	check(group.Host().AllGather(out, in))
	fmt.Printf("rank %d of %d sees %v\n", group.Rank(), group.World(), out)
	check(group.Close(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
