//go:build unix

package failure

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is when a test gives up: far above every deadline that it checks, since the machine may be busy.
const patience = 2 * time.Minute

// rank is a worker process.
type rank struct {
	number int
	cmd    *exec.Cmd
	orders *json.Encoder
	events chan event
	stderr tail
	stop   func()
}

// tail keeps what a worker says last, for when it dies of itself.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-4096):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// start gives a worker, which ends with the test at the latest.
func start(t testing.TB, number int) *rank {
	t.Helper()
	r := &rank{number: number, cmd: exec.Command(os.Args[0]), events: make(chan event, 100)}
	r.cmd.Env = append(os.Environ(), asWorker+"=1")
	r.cmd.Stderr = &r.stderr
	in, err := r.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	r.orders = json.NewEncoder(in)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer close(r.events)
		for d := json.NewDecoder(out); ; {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			r.events <- e
		}
	}()
	r.stop = sync.OnceFunc(func() {
		r.signal(syscall.SIGKILL)
		for range r.events { // let the reader end
		}
		<-gone
		_ = r.cmd.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rank) signal(s syscall.Signal) { _ = r.cmd.Process.Signal(s) }

func (r *rank) tell(t testing.TB, o order) {
	t.Helper()
	require.NoError(t, r.orders.Encode(o))
}

// hear waits for the next event, which must be the one that is wanted.
func (r *rank) hear(t testing.TB, what string) event {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case e, ok := <-r.events:
		require.True(t, ok, "rank %d has ended; %s", r.number, &r.stderr)
		require.Equal(t, what, e.What, "rank %d: %+v", r.number, e)
		return e
	case <-limit.C:
		require.FailNow(t, "a rank hangs", "rank %d has not said %q for %v", r.number, what, patience)
		return event{}
	}
}

// silent requires that the rank says nothing for a while.
func (r *rank) silent(t testing.TB, until <-chan time.Time) {
	t.Helper()
	select {
	case e := <-r.events:
		require.FailNow(t, "a rank spoke", "rank %d said %+v", r.number, e)
	case <-until:
	}
}

// fleet is the ranks of a group.
type fleet []*rank

var groupNumber atomic.Int64 // names the groups' meeting files

// meeting is a master at which no group has met before.
func meeting(t testing.TB) string {
	return "file:" + filepath.Join(os.TempDir(), fmt.Sprintf("hipfabric-failure-%d-%d", os.Getpid(), groupNumber.Add(1)))
}

// launch starts world ranks and opens a group of them, with what settings says.
func launch(t testing.TB, world int, settings order) fleet {
	t.Helper()
	f := make(fleet, world)
	for n := range f {
		f[n] = start(t, n)
	}
	f.open(t, settings)
	return f
}

func (f fleet) open(t testing.TB, settings order) {
	t.Helper()
	f.openWith(t, settings, func(int, *order) {})
}

// openWith lets each rank's order differ.
func (f fleet) openWith(t testing.TB, settings order, change func(n int, o *order)) {
	t.Helper()
	master := meeting(t)
	t.Cleanup(func() { _ = os.Remove(master[len("file:"):]) })
	for n, r := range f {
		o := settings
		o.Do, o.Rank, o.World, o.Master = "open", n, len(f), master
		change(n, &o)
		r.tell(t, o)
	}
	f.hear(t, "open")
}

func (f fleet) tell(t testing.TB, o order) {
	t.Helper()
	for _, r := range f {
		r.tell(t, o)
	}
}

func (f fleet) hear(t testing.TB, what string) []event {
	t.Helper()
	events := make([]event, len(f))
	for i, r := range f {
		events[i] = r.hear(t, what)
	}
	return events
}

// but is all ranks except one.
func (f fleet) but(number int) fleet {
	var others fleet
	for _, r := range f {
		if r.number != number {
			others = append(others, r)
		}
	}
	return others
}

// close ends a healthy group everywhere.
func (f fleet) close(t testing.TB) {
	t.Helper()
	f.tell(t, order{Do: "close"})
	f.hear(t, "closed")
}

// stop ends the processes.
func (f fleet) stop() {
	for _, r := range f {
		r.stop()
	}
}

// sameCause requires that every rank tells of one failure, and again when it calls once more.
func sameCause(t testing.TB, kind error, peer int, events []event) {
	t.Helper()
	for _, e := range events {
		require.Equal(t, kind.Error(), e.Kind, "%+v", e)
		require.Equal(t, peer, e.Peer, "%+v", e)
		require.NotEmpty(t, e.Text, "%+v", e)
		require.Equal(t, events[0].Text, e.Text, "two causes")
		require.Equal(t, events[0].From, e.From, "two reporters of one cause: %+v, %+v", events[0], e)
		require.Equal(t, e.Text, e.Again, "the next call has another cause: %+v", e)
	}
}
