//go:build linux || darwin

package link

import (
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is two groups with one connection between them.
func pair(t testing.TB, o Options) (a, b *Group, ca, cb *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	ends := make([]*Group, 2)
	conns := make([]*Conn, 2)
	for i, fd := range fds {
		require.NoError(t, unix.SetNonblock(fd, true))
		ends[i], err = New(o)
		require.NoError(t, err)
		conns[i], err = ends[i].Add(fd)
		require.NoError(t, err)
		t.Cleanup(ends[i].Close)
	}
	return ends[0], ends[1], conns[0], conns[1]
}

// swap sends one frame and receives one: the smallest Work.
type swap struct {
	c       *Conn
	header  [HeaderSize]byte
	recv    []byte // nil once it has come, or when nothing is due
	moved   uint64
	stalls  int
	parking chan struct{} // closed before the first park
	limit   int
}

func newSwap(c *Conn, send, recv []byte) *swap {
	if send != nil {
		copy(c.SendHeader()[:], "header")
		c.Send(send)
	}
	return &swap{c: c, recv: recv, limit: len(send), parking: make(chan struct{})}
}

func (s *swap) Poll() (bool, error) {
	if s.c.Sending() {
		n, err := s.c.Flush(s.limit)
		s.moved += uint64(n)
		if err != nil {
			return true, err
		}
	}
	if s.recv != nil {
		s.c.Expect(0, s.recv)
		n, err := s.c.Fill()
		s.moved += uint64(n)
		if err != nil {
			return true, err
		}
		if s.c.HeaderReady() && !s.c.Placed() {
			s.c.Place(s.recv)
		}
		if s.c.Complete() {
			s.header = *s.c.ReceivedHeader()
			s.c.Done()
			s.recv = nil
		}
	}
	return !s.c.Sending() && s.recv == nil, nil
}

func (s *swap) Progress() uint64 { return s.moved }

func (s *swap) Stalled(yes bool) {
	if yes {
		if s.stalls == 0 {
			close(s.parking)
		}
		s.stalls++
	}
}

func drive(g *Group, w Work, limit time.Duration) error {
	if err := g.Enter(); err != nil {
		return err
	}
	defer g.Leave()
	return g.Wait(w, limit)
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

func TestFramesOfEverySizeArriveWhole(t *testing.T) {
	for _, n := range []int{0, 1, inline - 1, inline, inline + 1, 64 << 10, 3 << 20} {
		a, b, ca, cb := pair(t, Options{SpinFor: time.Millisecond})
		in := [2][]byte{make([]byte, n), make([]byte, n)}
		var wg sync.WaitGroup
		swaps := [2]*swap{newSwap(ca, pattern(n, 0), in[0]), newSwap(cb, pattern(n, 1), in[1])}
		for i, g := range []*Group{a, b} {
			wg.Go(func() { assert.NoError(t, drive(g, swaps[i], 10*time.Second)) })
		}
		wg.Wait()
		for i := range in {
			assert.Equal(t, pattern(n, 1-i), in[i], "%d bytes", n)
			assert.Equal(t, "header", string(swaps[i].header[:6]))
		}
		sent, received, out, in1 := ca.Counts()
		assert.Equal(t, []uint64{uint64(n + HeaderSize), uint64(n + HeaderSize), 1, 1}, []uint64{sent, received, out, in1})
	}
}

func TestNeverReadsBeyondItsFrame(t *testing.T) {
	a, b, ca, cb := pair(t, Options{})
	for i := range 3 {
		require.NoError(t, drive(a, newSwap(ca, pattern(10*i, i), nil), time.Second))
	}
	for i := range 3 {
		dst := make([]byte, 10*i)
		require.NoError(t, drive(b, newSwap(cb, nil, dst), time.Second))
		assert.Equal(t, pattern(10*i, i), dst)
	}
}

func TestSmallPayloadWaitsForItsPlace(t *testing.T) {
	a, b, ca, cb := pair(t, Options{})
	require.NoError(t, drive(a, newSwap(ca, pattern(16, 1), nil), time.Second))
	dst := make([]byte, 16)
	require.NoError(t, b.Enter())
	cb.Expect(0, dst)
	_, err := cb.Fill()
	require.NoError(t, err)
	assert.True(t, cb.HeaderReady())
	assert.False(t, cb.Complete())
	assert.Equal(t, make([]byte, 16), dst, "the header can be refused before a byte is used")
	cb.Place(dst)
	assert.True(t, cb.Complete())
	assert.Equal(t, pattern(16, 1), dst)
	cb.Done()
	assert.False(t, cb.Receiving())
	b.Leave()
}

// Every turn parks, so that an event between the last poll and the park would be missed here.
func TestParkMissesNoEvent(t *testing.T) {
	a, b, ca, cb := pair(t, Options{SpinFor: 0})
	turns := 3000
	var wg sync.WaitGroup
	for i, g := range []*Group{a, b} {
		c := []*Conn{ca, cb}[i]
		wg.Go(func() {
			buf, in := make([]byte, 8), make([]byte, 8)
			for turn := range turns {
				if turn%2 == i {
					if err := drive(g, newSwap(c, buf, nil), 10*time.Second); err != nil {
						t.Errorf("send %d: %v", turn, err)
						return
					}
				} else if err := drive(g, newSwap(c, nil, in), 10*time.Second); err != nil {
					t.Errorf("receive %d: %v", turn, err)
					return
				}
			}
		})
	}
	wg.Wait()
	_, parks := a.Counts()
	assert.NotZero(t, parks)
}

func TestDeadlineCountsFromTheLastProgress(t *testing.T) {
	_, b, _, cb := pair(t, Options{SpinFor: time.Millisecond})
	w := newSwap(cb, nil, make([]byte, 8))
	begun := time.Now()
	assert.ErrorIs(t, drive(b, w, 50*time.Millisecond), os.ErrDeadlineExceeded)
	assert.GreaterOrEqual(t, time.Since(begun), 50*time.Millisecond)
	assert.Equal(t, 1, w.stalls, "said once, before the park")

	_, b, ca, cb := pair(t, Options{SpinFor: time.Millisecond})
	out := newSwap(ca, pattern(12*256, 0), nil)
	var wg sync.WaitGroup
	wg.Go(func() { // a byte now and then: longer in all than the deadline, never as long without progress
		tick := time.NewTicker(40 * time.Millisecond)
		defer tick.Stop()
		for i := 0; i <= 12; i++ {
			out.limit = i * 256
			if done, err := out.Poll(); done || err != nil {
				return
			}
			<-tick.C
		}
	})
	begun = time.Now()
	assert.NoError(t, drive(b, newSwap(cb, nil, make([]byte, 12*256)), 400*time.Millisecond))
	assert.Greater(t, time.Since(begun), 400*time.Millisecond)
	wg.Wait()
}

func TestAbortEndsAParkAndStays(t *testing.T) {
	_, b, _, cb := pair(t, Options{SpinFor: 0})
	cause := errors.New("the cause")
	parked := make(chan error, 1)
	w := newSwap(cb, nil, make([]byte, 8))
	go func() { parked <- drive(b, w, -1) }()
	<-w.parking
	b.Abort(cause)
	b.Abort(errors.New("a later one"))
	assert.Equal(t, cause, <-parked)
	assert.Equal(t, cause, b.Aborted())
	assert.Equal(t, cause, drive(b, newSwap(cb, nil, make([]byte, 8)), -1))
}

func TestCloseLetsTheDriverLeaveFirst(t *testing.T) {
	_, b, _, cb := pair(t, Options{SpinFor: 0})
	parked := make(chan error, 1)
	w := newSwap(cb, nil, make([]byte, 8))
	go func() { parked <- drive(b, w, -1) }()
	<-w.parking
	b.Abort(os.ErrClosed)
	b.Close()
	b.Close()
	assert.ErrorIs(t, <-parked, os.ErrClosed)
	assert.ErrorIs(t, b.Enter(), os.ErrClosed)
	_, err := unix.FcntlInt(uintptr(cb.fd), unix.F_GETFD, 0)
	assert.ErrorIs(t, err, unix.EBADF, "the socket is closed with its group")
}

func TestOneDriverAtATime(t *testing.T) {
	a, _, _, _ := pair(t, Options{})
	require.NoError(t, a.Enter())
	assert.ErrorIs(t, a.Enter(), ErrDriven)
	a.Leave()
	assert.NoError(t, a.Enter())
	a.Leave()
}

func TestTheEndOfAPeerIsSaid(t *testing.T) {
	a, b, _, cb := pair(t, Options{SpinFor: 0})
	got := make(chan error, 1)
	go func() { got <- drive(b, newSwap(cb, nil, make([]byte, 8)), -1) }()
	a.Close()
	assert.ErrorIs(t, <-got, io.EOF)
	err := drive(b, newSwap(cb, pattern(8, 0), nil), -1)
	var socket *SocketError
	require.ErrorAs(t, err, &socket)
	assert.Equal(t, "send", socket.Call)
	assert.ErrorIs(t, err, unix.EPIPE)
}

func TestYieldingWaitMovesTheSameBytes(t *testing.T) {
	a, b, ca, cb := pair(t, Options{SpinFor: 50 * time.Millisecond, Yield: true})
	in := make([]byte, 100<<10)
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, drive(a, newSwap(ca, pattern(len(in), 3), nil), time.Second)) })
	wg.Go(func() { assert.NoError(t, drive(b, newSwap(cb, nil, in), 10*time.Second)) })
	wg.Wait()
	assert.Equal(t, pattern(len(in), 3), in)
}

// late has its bytes from the moment it parks, as a process has that was stopped past its deadline.
type late struct{ parked bool }

func (l *late) Poll() (bool, error) { return l.parked, nil }
func (l *late) Progress() uint64    { return 0 }
func (l *late) Stalled(bool)        { l.parked = true }

func TestADeadlineThatPassedDuringAPauseAccusesNobody(t *testing.T) {
	g, _, _, _ := pair(t, Options{SpinFor: 0})
	assert.NoError(t, drive(g, &late{}, 20*time.Millisecond))
}
