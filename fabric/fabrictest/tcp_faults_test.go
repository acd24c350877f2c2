//go:build linux || darwin

package fabrictest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/tcp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// accepting is rank 0 of a wire.
type accepting struct{ wire }

func (accepting) Rank() int { return 0 }

func (accepting) Dial(context.Context, int, fabric.Lane) (*net.TCPConn, error) {
	return nil, errors.New("rank 0 accepts")
}

// faultyPair opens two ranks over tcp whose connection has faults.
func faultyPair(t require.TestingT, timeout time.Duration, plan ...fabrictest.Fault) (ranks []*fabric.Collective, done func()) {
	w := wire{make(chan *net.TCPConn, 1)}
	faulty := fabrictest.Faulty(w, plan...)
	transports, errs := make([]*tcp.Transport, 2), make([]error, 2)
	var wg sync.WaitGroup
	for r, m := range []tcp.Mesh{accepting{w}, faulty} {
		wg.Go(func() {
			transports[r], errs[r] = tcp.Open(context.Background(), m, tcp.Config{Group: "faulty", EagerBytes: fabrictest.PartBytes,
				ChunkBytes: fabrictest.PartBytes, Verify: true, Yield: true})
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	arbiters := fabrictest.Arbiters(2)
	for r, tr := range transports {
		c := fabric.New(tr, fabric.Options{Group: "faulty", Timeout: timeout, Arbiter: arbiters[r]})
		arbiters[r].OnCause(func() { _ = c.Check() })
		ranks = append(ranks, c)
	}
	return ranks, func() {
		require.NoError(t, errors.Join(ranks[0].Close(), ranks[1].Close(), faulty.Close()))
	}
}

// swaps exchanges a few times, small and large, and says what came that was never sent.
func swaps(c *fabric.Collective) error {
	for i, n := range []int{0, 100, fabrictest.PartBytes, 3*fabrictest.PartBytes + 5, 7} {
		in, out := bytes.Repeat([]byte{byte(16*c.Rank() + i)}, n), make([]byte, n)
		if err := c.Exchange(out, in, 1-c.Rank()); err != nil {
			return err
		}
		if want := bytes.Repeat([]byte{byte(16*(1-c.Rank()) + i)}, n); !bytes.Equal(out, want) {
			return fmt.Errorf("swap %d of %d bytes: WRONG BYTES", i, n)
		}
	}
	return nil
}

// Whatever a connection does at whatever byte: right bytes or one cause on both ranks, and nobody stays.
func TestTCPEndsAlikeWhateverTheConnectionDoes(t *testing.T) {
	const most = 18 << 10 // about what each rank sends in swaps
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]fabrictest.FaultKind{fabrictest.Drop, fabrictest.Cut, fabrictest.Corrupt, fabrictest.Delay}).Draw(t, "kind")
		fault := fabrictest.Fault{Kind: kind, Peer: 0, Inbound: rapid.Bool().Draw(t, "inbound"),
			Offset: rapid.Int64Range(0, most).Draw(t, "offset"), Bytes: rapid.Int64Range(0, 300).Draw(t, "bytes"), For: 10 * time.Millisecond}
		ranks, done := faultyPair(t, 400*time.Millisecond, fault)
		defer done()
		results := make(chan error, 2)
		for _, c := range ranks {
			go func() { results <- swaps(c) }()
		}
		for range ranks {
			select {
			case err := <-results:
				if kind == fabrictest.Delay {
					require.NoError(t, err)
				}
				if err != nil {
					require.NoError(t, fabrictest.WalkError(err))
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("a rank is still in its call")
			}
		}
		first, second := ranks[0].Check(), ranks[1].Check()
		if first == nil && second == nil {
			return
		}
		a, b := fabric.CauseOf(first), fabric.CauseOf(second)
		require.Equal(t, []any{a.Kind, a.Peer, a.From, a.Text}, []any{b.Kind, b.Peer, b.From, b.Text})
	})
}
