// Package outside uses hipfabric from another module.
package outside

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// freeAddress is a loopback address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestTwoRanksGatherAndSum(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	master := freeAddress(t)
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			g, err := hipfabric.Open(ctx, hipfabric.Config{Rank: rank, World: 2, Master: master})
			if err != nil {
				t.Errorf("rank %d: open: %v", rank, err)
				return
			}
			gathered := make([]byte, 2)
			if err := g.Host().AllGather(gathered, []byte{byte(rank + 1)}); err != nil || !bytes.Equal(gathered, []byte{1, 2}) {
				t.Errorf("rank %d: gathered %v: %v", rank, gathered, err)
			}
			sum := []float32{float32(rank + 1)}
			if err := g.Host().AllReduce(fabric.Bytes(sum), fabric.Bytes(sum), fabric.F32, fabric.Sum); err != nil || sum[0] != 3 {
				t.Errorf("rank %d: sum %v: %v", rank, sum, err)
			}
			if err := g.Close(ctx); err != nil {
				t.Errorf("rank %d: close: %v", rank, err)
			}
		})
	}
	ranks.Wait()
}
