//go:build linux

package netns

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/rpc"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric"
)

// patience is when a test gives up: far above every deadline that it checks, since the machine may be busy.
const patience = 2 * time.Minute

// worker is a rank's process on a host.
type worker struct {
	host   *Host
	client *rpc.Client
	stderr *tail
	signal func(syscall.Signal)
}

// start gives a worker, which ends with the test at the latest.
func start(t testing.TB, h *Host) *worker {
	t.Helper()
	cmd := h.Command(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"=1")
	w := &worker{host: h, stderr: &tail{}, signal: func(s syscall.Signal) { _ = cmd.Process.Signal(s) }}
	cmd.Stderr = w.stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w.client = rpc.NewClient(pipes{out, in})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = w.client.Close()
		_ = cmd.Wait()
	})
	return w
}

// ask makes a call and waits for its answer, for at most patience.
func (w *worker) ask(method string, args, reply any) error {
	call := w.client.Go("Worker."+method, args, reply, make(chan *rpc.Call, 1))
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-call.Done:
	case <-limit.C:
		return fmt.Errorf("%s: no answer to %s in %v", w.host.Name, method, patience)
	}
	return w.explain(method, call.Error)
}

// explain says what a worker wrote last where it did not answer.
func (w *worker) explain(method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w; it said: %s", w.host.Name, method, err, w.stderr)
}

// do is ask for calls that answer with a Fault.
func (w *worker) do(method string, args any) error {
	var f Fault
	if err := w.ask(method, args, &f); err != nil {
		return err
	}
	return f.err()
}

// tail keeps what a worker says last.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-64<<10):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// fleet is one worker a rank.
type fleet []*worker

// secret is every group's: no group of these tests is on loopback.
const secret = "a secret of the network tests"

var ports atomic.Int32 // of rank 0, each used once

// launch starts world workers, spread over the hosts in turn.
func launch(t testing.TB, hosts []*Host, world int) fleet {
	t.Helper()
	f := make(fleet, world)
	for rank := range f {
		f[rank] = start(t, hosts[rank%len(hosts)])
	}
	return f
}

// freshPort is one at which no group has met before.
func freshPort() uint16 { return uint16(20000 + ports.Add(1)%40000) }

// open joins the first world workers to a group. reach is rank 0's address as each rank names it.
func (f fleet) open(c hipfabric.Config, reach func(rank int) netip.Addr) ([]*subject, error) {
	c.World, c.Secret = len(f), []byte(secret)
	port := freshPort()
	subjects := make([]*subject, len(f))
	err := f.each(func(rank int) error {
		mine := c
		mine.Rank, mine.Master = rank, netip.AddrPortFrom(reach(rank), port).String()
		text, err := json.Marshal(mine)
		if err != nil {
			return err
		}
		var r Opened
		if err := f[rank].ask("Open", Settings{text}, &r); err != nil {
			return err
		}
		subjects[rank] = &subject{worker: f[rank], group: r.Group, rank: rank, world: len(f)}
		return r.Fault.err()
	})
	return subjects, err
}

// each runs fn for every rank at the same time and gives the first error.
func (f fleet) each(fn func(rank int) error) error {
	errs := make(chan error, len(f))
	for rank := range f {
		go func() {
			err := fn(rank)
			if err != nil {
				err = fmt.Errorf("rank %d: %w", rank, err)
			}
			errs <- err
		}()
	}
	var first error
	for range f {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
