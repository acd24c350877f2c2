//go:build linux

package netns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/rpc"
	"os"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
)

// closeLimit bounds a worker's Open and Close.
const closeLimit = time.Minute

// obey serves calls until the test hangs up.
func obey(in io.ReadCloser, out io.WriteCloser) int {
	server := rpc.NewServer()
	if err := server.RegisterName("Worker", &Worker{groups: map[int]*member{}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server.ServeConn(pipes{in, out})
	return 0
}

// pipes are a connection made of two.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error {
	_ = p.WriteCloser.Close()
	return p.ReadCloser.Close()
}

// Worker is a rank's process; it holds any number of groups at once.
type Worker struct {
	mu     sync.Mutex
	last   int
	groups map[int]*member
}

// member is this rank's part in one group.
type member struct {
	group  *hipfabric.Group
	flow   flow
	mu     sync.Mutex
	memory map[int]fabric.Memory
}

// Settings open a group: a hipfabric.Config in JSON, since gob refuses its logger, which is the worker's own.
type Settings struct{ JSON []byte }

// Opened tells of an Open: Group names it in later calls.
type Opened struct {
	Group int
	Fault Fault
}

// Open joins a group.
func (w *Worker) Open(s Settings, r *Opened) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var c hipfabric.Config
	if err := json.Unmarshal(s.JSON, &c); err != nil {
		return err
	}
	c.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	g, err := hipfabric.Open(ctx, c)
	if err != nil {
		r.Fault = takeApart(err)
		return nil
	}
	r.Group = w.keep(g)
	return nil
}

func (w *Worker) keep(g *hipfabric.Group) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.groups[w.last] = &member{group: g, memory: map[int]fabric.Memory{}}
	return w.last
}

// Split makes a group of all ranks of another, called Text.
func (w *Worker) Split(o Order, r *Opened) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return w.with(o.Group, &r.Fault, func(m *member) error {
		g, err := m.group.Split(ctx, o.Text, 0, m.group.Host().Rank(), hipfabric.SplitOptions{Lanes: 2})
		if err == nil {
			r.Group = w.keep(g)
		}
		return err
	})
}

func (w *Worker) find(group int) (*member, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok := w.groups[group]; ok {
		return m, nil
	}
	return nil, fmt.Errorf("the worker has no group %d", group)
}

// with answers a call with what fn says of a group.
func (w *Worker) with(group int, r *Fault, fn func(m *member) error) error {
	m, err := w.find(group)
	if err == nil {
		*r = takeApart(fn(m))
	}
	return err
}

// Order is what most calls take.
type Order struct {
	Group int
	Text  string // Abort, Split
}

// Stats reads a group's counters.
func (w *Worker) Stats(o Order, r *fabric.Stats) error {
	m, err := w.find(o.Group)
	if err == nil {
		*r = m.group.Stats()
	}
	return err
}

// Check gives a group's cause.
func (w *Worker) Check(o Order, r *Fault) error {
	return w.with(o.Group, r, func(m *member) error { return m.group.Host().Check() })
}

// Abort ends a group.
func (w *Worker) Abort(o Order, r *Fault) error {
	return w.with(o.Group, r, func(m *member) error {
		m.group.Abort(fmt.Errorf("%s", o.Text))
		return nil
	})
}

// Close leaves a group, which stays known: calls of a closed one have their error.
func (w *Worker) Close(o Order, r *Fault) error {
	return w.with(o.Group, r, func(m *member) error {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		return m.group.Close(ctx)
	})
}
