//go:build unix

package verbs

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// table is one in Go, with what a test asks of it. Handles count up from 1; its descriptor is a pipe that nobody writes to.
type table struct {
	driver.Table
	fd        int
	handles   atomic.Uintptr
	crossings atomic.Int64
	closing   func() syscall.Errno // of context or channel
	event     func() driver.Async
	sent      []driver.SendWR // the first chain
	gathered  []driver.SGE
}

func (t *table) next() uintptr                                  { return t.handles.Add(1) }
func (t *table) Has(driver.Symbol) bool                         { return false }
func (t *table) Library() string                                { return "table" }
func (t *table) Devices() ([]driver.Device, syscall.Errno)      { return []driver.Device{{Name: "go0"}}, 0 }
func (t *table) Open(string) (uintptr, syscall.Errno)           { return t.next(), 0 }
func (t *table) Close(uintptr) syscall.Errno                    { return t.close() }
func (t *table) AsyncFD(uintptr) int                            { return t.fd }
func (t *table) CQEvent(uintptr) (uintptr, syscall.Errno)       { return 0, syscall.EAGAIN }
func (t *table) DestroyChannel(uintptr) syscall.Errno           { return t.close() }
func (t *table) AllocPD(uintptr) (uintptr, syscall.Errno)       { return t.next(), 0 }
func (t *table) FreePD(uintptr) syscall.Errno                   { return 0 }
func (t *table) DestroyCQ(uintptr) syscall.Errno                { return 0 }
func (t *table) DestroyQP(uintptr) syscall.Errno                { return 0 }
func (t *table) Poll(uintptr, []driver.WC) (int, syscall.Errno) { t.crossings.Add(1); return 0, 0 }

func (t *table) Attr(uintptr) (driver.DeviceAttr, syscall.Errno) {
	return driver.DeviceAttr{Ports: 1, MaxCQE: 4096, MaxQPWR: 4096, MaxSGE: 4, MaxReadsIn: 1, MaxReadsOut: 1}, 0
}

func (t *table) AsyncEvent(uintptr) (driver.Async, syscall.Errno) {
	if t.event == nil {
		return driver.Async{}, syscall.EAGAIN
	}
	return t.event(), 0
}

func (t *table) CreateChannel(uintptr) (uintptr, int, syscall.Errno) { return t.next(), t.fd, 0 }

func (t *table) CreateCQ(_ uintptr, entries int, _ uintptr, _ int) (uintptr, int, syscall.Errno) {
	return t.next(), entries, 0
}

func (t *table) CreateQP(_ uintptr, c driver.QPConfig) (driver.QP, syscall.Errno) {
	h := t.next()
	return driver.QP{Handle: h, Number: uint32(h), SendWRs: c.SendWRs, RecvWRs: c.RecvWRs, Inline: c.Inline}, 0
}

func (t *table) PostSend(_ uintptr, wr []driver.SendWR, sge []driver.SGE) (int, syscall.Errno) {
	if t.crossings.Add(1) == 1 {
		t.sent, t.gathered = slices.Clone(wr), slices.Clone(sge)
	}
	return len(wr), 0
}

func (t *table) PostRecv(_ uintptr, wr []driver.RecvWR, _ []driver.SGE) (int, syscall.Errno) {
	t.crossings.Add(1)
	return len(wr), 0
}

func (t *table) close() syscall.Errno {
	if t.closing == nil {
		return 0
	}
	return t.closing()
}

func openTable(t testing.TB, table *table) *Context {
	t.Helper()
	var fd [2]int
	require.NoError(t, unix.Pipe(fd[:]))
	require.NoError(t, unix.SetNonblock(fd[0], true))
	t.Cleanup(func() { unix.Close(fd[0]); unix.Close(fd[1]) })
	table.fd = fd[0]
	d, err := OpenTable(table).Device("go0")
	require.NoError(t, err)
	c, err := d.Open()
	require.NoError(t, err)
	return c
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T { require.NoError(t, err); return v }
}

func soon[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		require.FailNow(t, what+" has not returned")
		panic("unreachable")
	}
}

// Who waits looks for an event under a lock that Close holds.
func TestACloseDoesNotWaitForWhoWaitsForIt(t *testing.T) {
	for range 20 {
		table := &table{}
		c := openTable(t, table)
		ch := must[*Channel](t)(c.NewChannel())
		waited := make(chan error, 2)
		begin := func(wait func() error, waiting func() bool) func() syscall.Errno {
			return func() syscall.Errno {
				go func() { waited <- wait() }()
				for !waiting() {
					runtime.Gosched()
				}
				for range 1000 { // it is on its way to the lock
					runtime.Gosched()
				}
				return 0
			}
		}
		closed := make(chan error, 1)
		table.closing = begin(func() error { _, err := ch.Wait(t.Context()); return err }, ch.Waiting)
		go func() { closed <- ch.Close() }()
		require.NoError(t, soon(t, "Channel.Close", closed))
		require.ErrorIs(t, soon(t, "Wait", waited), os.ErrClosed)
		table.closing = begin(func() error { _, err := c.NextEvent(t.Context()); return err }, c.Waiting)
		go func() { closed <- c.Close() }()
		require.NoError(t, soon(t, "Context.Close", closed))
		require.ErrorIs(t, soon(t, "NextEvent", waited), os.ErrClosed)
	}
}

func TestAContextThatDidNotCloseStillHasEvents(t *testing.T) {
	table := &table{closing: func() syscall.Errno { return syscall.EBUSY }}
	c := openTable(t, table)
	require.EqualError(t, c.Close(), fmt.Sprintf("ibv_close_device on go0: %v (errno %d)", syscall.EBUSY, int(syscall.EBUSY)))
	table.event = func() driver.Async { return driver.Async{Type: uint32(EventPortError), Port: 1} }
	event, err := c.NextEvent(t.Context())
	require.NoError(t, err)
	assert.Equal(t, AsyncEvent{Type: EventPortError, Port: 1}, event)
	table.closing = nil
	require.NoError(t, c.Close())
}

// A device gives a handle away again as soon as what had it is gone.
func TestAnEventIsNeverOfAQueuePairThatCameAfterIt(t *testing.T) {
	table := &table{}
	c := openTable(t, table)
	pd := must[*PD](t)(c.NewPD())
	cq := must[*CQ](t)(c.NewCQ(CQConfig{}))
	old := must[*QP](t)(pd.NewQP(QPConfig{SendCQ: cq}))
	table.event = func() driver.Async {
		if c.books.TryLock() {
			c.books.Unlock()
			require.NoError(t, old.Close())
			table.handles.Store(old.h - 1)
			must[*QP](t)(pd.NewQP(QPConfig{SendCQ: cq}))
		}
		return driver.Async{Type: uint32(EventQPFatal), Handle: old.h}
	}
	event, there, err := c.Event()
	require.NoError(t, err)
	require.True(t, there)
	assert.Same(t, old, event.QP)
	require.NoError(t, c.Close())
}

func TestQueuePairsOfTheSameTwoCQsAreMadeAtOnce(t *testing.T) {
	c := openTable(t, &table{})
	a, b := must[*CQ](t)(c.NewCQ(CQConfig{})), must[*CQ](t)(c.NewCQ(CQConfig{}))
	made := make(chan error, 2)
	for _, f := range []QPConfig{{SendCQ: a, RecvCQ: b}, {SendCQ: b, RecvCQ: a}} {
		pd := must[*PD](t)(c.NewPD())
		go func() {
			for range 20000 {
				q, err := pd.NewQP(f)
				if err == nil {
					err = q.Close()
				}
				if err != nil {
					made <- err
					return
				}
			}
			made <- nil
		}()
	}
	require.NoError(t, soon(t, "NewQP", made))
	require.NoError(t, soon(t, "NewQP", made))
	require.NoError(t, c.Close())
}

func TestAChainAndABatchAreOneCrossing(t *testing.T) {
	table := &table{}
	c := openTable(t, table)
	pd := must[*PD](t)(c.NewPD())
	cq := must[*CQ](t)(c.NewCQ(CQConfig{}))
	q := must[*QP](t)(pd.NewQP(QPConfig{SendCQ: cq}))
	n, err := q.PostSend(make([]SendWR, 300)...)
	require.NoError(t, err)
	assert.Equal(t, [2]int{300, 1}, [2]int{n, int(table.crossings.Load())})
	n, err = q.PostRecv(make([]RecvWR, 300)...)
	require.NoError(t, err)
	assert.Equal(t, [2]int{300, 2}, [2]int{n, int(table.crossings.Load())})
	_, err = cq.Poll(make([]WC, 300))
	require.NoError(t, err)
	assert.EqualValues(t, 3, table.crossings.Load())
	require.NoError(t, c.Close())
}
