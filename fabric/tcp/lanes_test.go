//go:build linux || darwin

package tcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
)

// wide is two ranks with several lanes, in the test's hands.
type wide struct {
	ts    [2]*Transport
	ranks [2]*fabric.Collective
	mesh  *fabrictest.FaultyMesh
	log   *record
}

// record keeps what was logged.
type record struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
	said  chan struct{} // holds a token after a line
}

func (r *record) Enabled(context.Context, slog.Level) bool { return true }

func (r *record) Handle(_ context.Context, l slog.Record) error {
	text := l.Message
	l.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	r.mu.Lock()
	r.lines = append(r.lines, text)
	r.mu.Unlock()
	select {
	case r.said <- struct{}{}:
	default:
	}
	return nil
}

// await blocks until a line with text was logged.
func (r *record) await(t require.TestingT, text string) {
	limit := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		lines := append([]string(nil), r.lines...)
		r.mu.Unlock()
		for _, l := range lines {
			if bytes.Contains([]byte(l), []byte(text)) {
				return
			}
		}
		select {
		case <-r.said:
		case <-limit:
			require.Fail(t, "never logged", "%q; there is %q", text, lines)
		}
	}
}

func openWide(t require.TestingT, tb testing.TB, c Config, rails int, timeout time.Duration, plan ...fabrictest.Fault) *wide {
	meshes := localMeshes(tb, 2)
	w := &wide{mesh: fabrictest.Faulty(meshes[1], plan...), log: &record{said: make(chan struct{}, 1)}}
	meshes[0].rails, meshes[1].rails = rails, rails
	c.Logger = slog.New(w.log)
	arbiters := fabrictest.Arbiters(2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for r, m := range []Mesh{meshes[0], w.mesh} {
		wg.Go(func() {
			if w.ts[r], errs[r] = Open(context.Background(), m, c); errs[r] == nil {
				w.ranks[r] = fabric.New(w.ts[r], fabric.Options{Timeout: timeout, Arbiter: arbiters[r]})
				arbiters[r].OnCause(func() { w.ts[r].Abort(arbiters[r].Cause()) })
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return w
}

func (w *wide) close(t require.TestingT) {
	require.NoError(t, errors.Join(w.ranks[0].Close(), w.ranks[1].Close(), w.mesh.Close()))
}

// both runs fn on the two ranks and gives their errors.
func (w *wide) both(fn func(c *fabric.Collective) error) [2]error {
	var errs [2]error
	var wg sync.WaitGroup
	for r, c := range w.ranks {
		wg.Go(func() { errs[r] = fn(c) })
	}
	wg.Wait()
	return errs
}

// mixed makes calls of every shape, and says what came that was never sent.
func mixed(seed uint64, calls int) func(c *fabric.Collective) error {
	return func(c *fabric.Collective) error {
		rnd := rand.New(rand.NewPCG(seed, 1)) // the same calls on both ranks
		me, other := c.Rank(), 1-c.Rank()
		fill := func(b []byte, rank, call int) {
			for i := range b {
				b[i] = byte(i*7 + i>>8 + 100*rank + call)
			}
		}
		check := func(what string, got []byte, rank, call int) error {
			want := make([]byte, len(got))
			if fill(want, rank, call); !bytes.Equal(got, want) {
				return fmt.Errorf("call %d, %s of %d bytes: WRONG BYTES", call, what, len(got))
			}
			return nil
		}
		for call := range calls {
			n := []int{0, 16, 1000, 5000, 70_000, 300_000}[rnd.IntN(6)]
			in, out := make([]byte, n), make([]byte, n)
			fill(in, me, call)
			var err error
			switch rnd.IntN(5) {
			case 0:
				if err = c.Exchange(out, in, other); err == nil {
					err = check("exchange", out, other, call)
				}
			case 1: // one way, and rank 0 goes on before rank 1 has it
				if me == 0 {
					err = c.Send(in, 1)
				} else if err = c.Recv(out, 0); err == nil {
					err = check("recv", out, 0, call)
				}
			case 2:
				if me == 1 {
					err = c.Send(in, 0)
				} else if err = c.Recv(out, 1); err == nil {
					err = check("recv", out, 1, call)
				}
			case 3: // in place: what was sent is overwritten as soon as it may be
				sums := make([]int32, n/4)
				for i := range sums {
					sums[i] = int32(i*(me+1) + call)
				}
				if err = c.AllReduce(fabric.Bytes(sums), fabric.Bytes(sums), fabric.I32, fabric.Sum); err == nil {
					for i, v := range sums {
						if v != int32(3*i+2*call) {
							return fmt.Errorf("call %d, all-reduce of %d bytes: element %d is %d: WRONG BYTES", call, n, i, v)
						}
					}
				}
			case 4:
				all := make([]byte, 2*n)
				copy(all[me*n:], in)
				if err = c.AllGather(all, all[me*n:][:n]); err == nil {
					err = errors.Join(check("all-gather", all[:n], 0, call), check("all-gather", all[n:], 1, call))
				}
			}
			clear(in) // the call is over: its buffers are the caller's
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// Whatever dies, one lane that lives is enough: every byte is right, and no rank hears of it.
func TestOneLivingLaneIsEnough(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lanes := rapid.IntRange(2, 4).Draw(rt, "lanes")
		var plan []fabrictest.Fault
		for lane := range lanes - 1 {
			plan = append(plan, fabrictest.Fault{Kind: fabrictest.Cut, Peer: 0, Lanes: []int{lane}, Again: rapid.Bool().Draw(rt, "again"),
				Inbound: rapid.Bool().Draw(rt, "inbound"), Offset: rapid.Int64Range(0, 700_000).Draw(rt, "offset")})
		}
		c := Config{Lanes: lanes, EagerBytes: 4096, ChunkBytes: 16384, Verify: rapid.Bool().Draw(rt, "verify"), Yield: true,
			SpinFor: time.Duration(rapid.IntRange(-1, 1).Draw(rt, "spin")) * time.Millisecond}
		w := openWide(rt, t, c, rapid.IntRange(1, lanes).Draw(rt, "rails"), 20*time.Second, plan...)
		defer w.close(rt)
		errs := w.both(mixed(rapid.Uint64().Draw(rt, "seed"), 30))
		require.NoError(rt, errors.Join(errs[:]...))
	})
}

func TestNoLaneLeftNamesTheRails(t *testing.T) {
	w := openWide(t, t, Config{Lanes: 3}, 3, 20*time.Second, fabrictest.Fault{Kind: fabrictest.Cut, Peer: 0, Offset: 200_000, Again: true})
	defer w.close(t)
	errs := w.both(mixed(1, 200))
	for _, err := range errs {
		require.ErrorIs(t, err, fabric.ErrPeerFailed)
		assert.Equal(t, fabric.CauseOf(errs[0]), fabric.CauseOf(err), "one cause on both ranks")
		for rail := range 3 {
			assert.ErrorContains(t, err, fmt.Sprintf("lo%d", rail))
		}
	}
}

func TestADeadRailIsDialledAnewAndCarriesBytesAgain(t *testing.T) {
	w := openWide(t, t, Config{Lanes: 2}, 2, 20*time.Second, fabrictest.Fault{Kind: fabrictest.Cut, Peer: 0, Offset: 100_000, Lanes: []int{1}})
	defer w.close(t)
	swap := func(c *fabric.Collective) error {
		in, out := bytes.Repeat([]byte{byte(c.Rank() + 1)}, 4<<20), make([]byte, 4<<20)
		if err := c.Exchange(out, in, 1-c.Rank()); err != nil {
			return err
		}
		if !bytes.Equal(out, bytes.Repeat([]byte{byte(2 - c.Rank())}, len(out))) {
			return errors.New("WRONG BYTES")
		}
		return nil
	}
	rail := func(r int) fabric.RailStats { return w.ts[r].Stats().Peers[0].Rails[1] }
	errs := w.both(swap)
	require.NoError(t, errors.Join(errs[:]...))
	for _, line := range []string{"rail lost peer=0", "rail lost peer=1", "rail is back peer=0", "rail is back peer=1"} {
		w.log.await(t, line)
	}
	before := [2]fabric.RailStats{rail(0), rail(1)}
	for r := range before {
		assert.Equal(t, 1, before[r].Lanes, "rank %d", r)
		assert.EqualValues(t, 1, before[r].Lost, "rank %d", r)
	}
	errs = w.both(swap)
	require.NoError(t, errors.Join(errs[:]...))
	for r := range w.ts {
		assert.Greater(t, rail(r).SentBytes, before[r].SentBytes, "rank %d", r)
		assert.Greater(t, rail(r).ReceivedBytes, before[r].ReceivedBytes, "rank %d", r)
	}
}

// A rail that dies at every look, and is dialled anew in between: the worst that a bad cable does.
func TestAFlappingRailSpoilsNothing(t *testing.T) {
	meshes := localMeshes(t, 2)
	var ranks [2]*fabric.Collective
	var ts [2]*Transport
	var wg sync.WaitGroup
	for r, m := range meshes {
		wg.Go(func() {
			var err error
			ts[r], err = Open(context.Background(), flapping{m}, Config{Lanes: 4, EagerBytes: 4096, ChunkBytes: 16384, Yield: true, Verify: true, Logger: slog.New(slog.DiscardHandler)})
			if assert.NoError(t, err) {
				ranks[r] = fabric.New(ts[r], fabric.Options{Timeout: 20 * time.Second})
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	w := &wide{ts: ts, ranks: ranks}
	for began, seed := time.Now(), uint64(0); time.Since(began) < 3*time.Second; seed++ {
		errs := w.both(mixed(seed, 40))
		require.NoError(t, errors.Join(errs[:]...), "seed %d", seed)
	}
	assert.Greater(t, ts[0].Stats().Peers[0].Rails[1].Lost, uint64(2), "it died again and again")
	require.NoError(t, errors.Join(ranks[0].Close(), ranks[1].Close()))
}

// flapping has a second rail on which connections do not live long.
type flapping struct{ *localMesh }

func (flapping) Rails(int) []fabric.Rail {
	return []fabric.Rail{{Interface: loopbackName}, {Index: 1, Interface: loopbackName}}
}

func (m flapping) Dial(ctx context.Context, peer int, lane fabric.Lane) (*net.TCPConn, error) {
	far, err := m.localMesh.Dial(ctx, peer, lane)
	if err != nil || lane.Rail != 1 {
		return far, err
	}
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer between.Close()
	near, err := net.Dial("tcp", between.Addr().String())
	if err != nil {
		return nil, err
	}
	middle, err := between.Accept()
	if err != nil {
		return nil, err
	}
	cut := func() {
		for _, c := range []net.Conn{middle, far} {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	time.AfterFunc(time.Duration(50+100*lane.Index)*time.Millisecond, cut)
	go func() { _, _ = io.Copy(middle, far) }()
	go func() { _, _ = io.Copy(far, middle) }()
	return near.(*net.TCPConn), nil
}
