//go:build unix

package failure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/tcp"
)

// closeLimit bounds a worker's Open and Close.
const closeLimit = time.Minute

// group is what a worker needs of a hipfabric.Group, or of one put together with a faulty mesh.
type group struct {
	host    *fabric.Collective
	control *bootstrap.Control
	done    <-chan struct{}
	cause   func() error
	close   func(context.Context) error
	split   func(ctx context.Context, o order) (*group, error) // Raw has none
}

// orphanLimit is how long a worker may still be busy once nobody can give it orders any more.
const orphanLimit = 30 * time.Second

// obey is a worker's life.
func obey(in io.Reader, out io.Writer) int {
	w := &worker{out: json.NewEncoder(out)}
	for o := range orders(in) {
		if err := w.do(o); err != nil {
			w.failed(err)
		}
	}
	return 0
}

// orders come until the test closes them, or has ended: then a worker in a call without end must not outlive it.
func orders(in io.Reader) <-chan order {
	c := make(chan order)
	go func() {
		defer close(c)
		for d := json.NewDecoder(in); ; {
			var o order
			if err := d.Decode(&o); err != nil {
				time.AfterFunc(orphanLimit, func() { os.Exit(1) })
				return
			}
			c <- o
		}
	}()
	return c
}

type worker struct {
	mu  sync.Mutex // guards out
	out *json.Encoder
	g   *group

	fds, goroutines int // held without a group, after the first one
}

func (w *worker) say(e event) {
	if e.At == 0 {
		e.At = time.Now().UnixNano()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(e)
}

func (w *worker) failed(err error) {
	at := time.Now().UnixNano()
	e := event{What: "error", At: at, Fault: takeApart(err), Description: err.Error()}
	if w.g != nil {
		if again := w.g.host.Barrier(); again != nil {
			e.Again = takeApart(again).Text
		}
	}
	w.say(e)
}

func (w *worker) do(o order) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	switch o.Do {
	case "open":
		g, err := open(ctx, o)
		if err != nil {
			return err
		}
		w.g = g
		w.say(event{What: "open"})
	case "split": // whose part is the group from then on
		part, err := w.g.split(ctx, o)
		if err != nil {
			return err
		}
		part.close = w.g.close
		w.g = part
		w.say(event{What: "split"})
	case "calls":
		call := caller(w.g.host, o)
		if err := call(); err != nil {
			return err
		}
		w.say(event{What: "begun"})
		for {
			if err := call(); err != nil {
				return err
			}
		}
	case "once":
		w.say(event{What: "begun"})
		if err := caller(w.g.host, o)(); err != nil {
			return err
		}
		w.say(event{What: "done"})
	case "await":
		go w.sayWhenParked(o.Peer)
		return caller(w.g.host, o)()
	case "stream":
		return w.stream(o)
	case "park":
		w.say(event{What: "begun"})
		if _, _, err := w.g.control.Recv(context.Background(), make([]byte, 100)); err != nil {
			return err
		}
		w.say(event{What: "done"})
	case "message":
		if err := w.g.control.Broadcast(ctx, []byte("on")); err != nil {
			return err
		}
		w.say(event{What: "done"})
	case "idle":
		w.say(event{What: "begun"})
		<-w.g.done
		return w.g.cause()
	case "close":
		if err := w.g.close(ctx); err != nil {
			return err
		}
		w.g = nil
		w.say(w.leftovers("closed"))
	case "free": // a group that has failed
		_ = w.g.close(ctx)
		w.g = nil
		w.say(w.leftovers("closed"))
	case "reopen":
		return w.reopen(ctx, o)
	case "spin":
		w.say(event{What: "begun"})
		for {
			runtime.Gosched()
		}
	default:
		return fmt.Errorf("no order %q", o.Do)
	}
	return nil
}

// sayWhenParked tells once the call under way is parked and nobody but peer can end that.
func (w *worker) sayWhenParked(peer int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if p := w.g.host.Progress(); p.Running && p.Waiting == 1<<peer && w.g.host.Stats().Transport.Parks > 0 {
			w.say(event{What: "parked"})
			return
		}
		select {
		case <-tick.C:
		case <-w.g.done:
			return
		}
	}
}

func (w *worker) stream(o order) error {
	if o.After > 0 {
		g := w.g
		timer := time.AfterFunc(o.After, func() {
			if !o.Leave {
				g.host.Abort(errors.New("the test says so"))
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
			defer cancel()
			_ = g.close(ctx)
		})
		defer timer.Stop()
	}
	w.say(event{What: "begun"})
	return measure.Stream(w.g.host, o.Seed, o.Odd)
}

// reopen opens and closes a group again and again, and says what that left behind.
func (w *worker) reopen(ctx context.Context, o order) error {
	for i := range o.Count {
		next := o
		next.Master = fmt.Sprintf("%s-%d", o.Master, i)
		g, err := open(ctx, next)
		if err != nil {
			return err
		}
		if err := errors.Join(g.host.Barrier(), g.control.Barrier(ctx), g.close(ctx)); err != nil {
			return err
		}
		if i == o.Count/10 {
			w.settled()
		}
	}
	w.say(w.leftovers("leak"))
	return nil
}

func open(ctx context.Context, o order) (*group, error) {
	quiet := slog.New(slog.DiscardHandler)
	if o.Raw {
		return openFaulty(ctx, o, quiet)
	}
	g, err := hipfabric.Open(ctx, hipfabric.Config{Rank: o.Rank, World: o.World, Master: o.Master, Timeout: o.Timeout, Verify: o.Verify, Logger: quiet})
	if err != nil {
		return nil, err
	}
	return of(g), nil
}

func of(g *hipfabric.Group) *group {
	return &group{host: g.Host(), control: g.Control(), done: g.Done(), cause: g.Err, close: g.Close,
		split: func(ctx context.Context, o order) (*group, error) {
			part, err := g.Split(ctx, "part", o.Color, -o.Rank, hipfabric.SplitOptions{Isolated: o.Isolated})
			if err != nil {
				return nil, err
			}
			return of(part), nil
		}}
}

// openFaulty is hipfabric.Open with faults between the bootstrap and the path.
func openFaulty(ctx context.Context, o order, log *slog.Logger) (*group, error) {
	s, err := bootstrap.Join(ctx, bootstrap.Config{Group: fabric.DefaultGroup, Rank: o.Rank, World: o.World, Master: o.Master, Logger: log,
		Settings: settingsOf(o)})
	if err != nil {
		return nil, err
	}
	var faults []fabrictest.Fault
	if o.Kind != 0 {
		faults = append(faults, fabrictest.Fault{Kind: o.Kind, Peer: -1, Inbound: o.Inbound, Offset: o.Offset, Bytes: int64(o.Bytes)})
	}
	mesh := fabrictest.Faulty(s, faults...)
	t, err := tcp.Open(ctx, mesh, tcp.Config{Group: fabric.DefaultGroup, Channel: "host", Verify: o.Verify, Logger: log})
	if err != nil {
		return nil, errors.Join(err, mesh.Close(), s.Close(ctx))
	}
	if err := s.Vote(ctx, "tcp", nil); err != nil {
		return nil, errors.Join(err, t.Close(), mesh.Close(), s.Close(ctx))
	}
	host := fabric.New(t, fabric.Options{Timeout: o.Timeout, Arbiter: s})
	s.OnCause(t.Abort)
	s.Watch(host.Progress, host.Records)
	return &group{host: host, control: s.Control(), done: s.Done(), cause: s.Cause, close: func(ctx context.Context) error {
		return errors.Join(s.Close(ctx), host.Close(), mesh.Close())
	}}, nil
}

// caller makes one call of the order's kind, on buffers of its own.
func caller(c *fabric.Collective, o order) func() error {
	in, out := make([]byte, o.Bytes), make([]byte, o.Bytes*c.World())
	switch o.Op {
	case fabric.AllGather:
		return func() error { return c.AllGather(out, in) }
	case fabric.AllReduce:
		return func() error { return c.AllReduce(out[:o.Bytes], in, fabric.F32, fabric.Sum) }
	case fabric.Send:
		pattern(in)
		return func() error { return c.Send(in, o.Peer) }
	case fabric.Recv:
		return func() error {
			if err := c.Recv(in, o.Peer); err != nil {
				return err
			}
			want := make([]byte, len(in))
			pattern(want)
			if string(want) != string(in) {
				return measure.ErrWrong
			}
			return nil
		}
	default:
		return c.Barrier
	}
}

func pattern(b []byte) {
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
}

func descriptors() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list)
		}
	}
	return 0
}

// settled counts descriptors and goroutines once those that are ending have had their time: until no more are there than
// before, or for long enough to call the rest a leak.
func (w *worker) settled() (fds, goroutines int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		fds, goroutines = descriptors(), runtime.NumGoroutine()
		if i > 100 && w.fds == 0 || i > 0 && fds <= w.fds && goroutines <= w.goroutines || i > 5000 {
			break
		}
		<-tick.C
	}
	if w.fds == 0 {
		w.fds, w.goroutines = fds, goroutines
	}
	return fds, goroutines
}

// leftovers is what this worker holds without a group.
func (w *worker) leftovers(what string) event {
	e := event{What: what, FdsBefore: w.fds, Before: w.goroutines}
	e.Fds, e.Goroutines = w.settled()
	if e.FdsBefore == 0 {
		e.FdsBefore, e.Before = e.Fds, e.Goroutines
	}
	if e.Goroutines > e.Before {
		stacks := make([]byte, 64<<10)
		e.Description = string(stacks[:runtime.Stack(stacks, true)])
	}
	return e
}

// settingsOf are compared like those of hipfabric.Open, which other ranks of the group may use.
func settingsOf(o order) []bootstrap.Setting {
	return []bootstrap.Setting{{Name: "Timeout", Value: o.Timeout.String()}, {Name: "Verify", Value: fmt.Sprint(o.Verify)}}
}
