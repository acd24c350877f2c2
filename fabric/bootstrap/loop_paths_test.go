//go:build linux || darwin

package bootstrap

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hipfabric/hipfabric/fabric/internal/sock"
)

// pairOfWays is rank 0's loop, which does not run, with one link of two paths.
func pairOfWays(t *testing.T) (*loop, *link) {
	w := newTwins(t)
	t.Cleanup(w.close)
	w.open()
	w.settle()
	c := Config{World: 2}
	s := newSession(c.withDefaults())
	t.Cleanup(s.end)
	s.loop = newLoop(s, newSolo(), []*link{w.ends[0].link})
	s.loop.links[0].several = true
	return s.loop, s.loop.links[0]
}

func TestOnlyTheLastPathsEndIsADeath(t *testing.T) {
	l, k := pairOfWays(t)
	l.dropPath(k, k.paths[0], io.EOF)
	require.Len(t, k.paths, 1)
	assert.Empty(t, l.deaths)
	l.dropPath(k, k.paths[0], errors.New("reset"))
	assert.False(t, k.alive())
	require.Len(t, l.deaths, 1)
	assert.Equal(t, "its control connection failed: reset", l.deaths[0].Text)
}

// A cable that is out keeps nobody from leaving: the end that came by another way is enough.
func TestAfterAGoodbyeOneEndIsEnough(t *testing.T) {
	for name, said := range map[string]func(*loop, *link){
		"theirs": func(_ *loop, k *link) { k.left = true },
		"ours":   func(l *loop, k *link) { l.said = true; k.shutdown() },
	} {
		l, k := pairOfWays(t)
		l.dropPath(k, k.paths[1], unix.ETIMEDOUT)
		assert.True(t, k.alive(), name)
		l, k = pairOfWays(t)
		said(l, k)
		l.dropPath(k, k.paths[1], unix.ETIMEDOUT)
		assert.True(t, k.alive(), "%s: what this path did not bring, the other may", name)
		l, k = pairOfWays(t)
		said(l, k)
		l.dropPath(k, k.paths[1], io.EOF)
		assert.False(t, k.alive(), name)
		assert.Empty(t, l.deaths, name)
	}
}

func TestAStallWakesTheLoop(t *testing.T) {
	l, k := pairOfWays(t)
	l.mon.every = -1
	now := time.Now()
	l.prune(now)
	assert.Equal(t, time.Duration(-1), l.patience(now))
	k.taken++ // as if the one path had brought it
	k.paths[0].at++
	l.prune(now)
	assert.Equal(t, pathStall, l.patience(now))
	l.prune(now.Add(pathStall))
	assert.Len(t, k.paths, 1)
	assert.Equal(t, time.Duration(-1), l.patience(now))
}

// A newer connection of a rail takes the place of the older one, which may not know yet that it is dead.
func TestANewerPathReplacesItsRailsOlderOne(t *testing.T) {
	for name, c := range map[string]struct {
		rail      int
		was, is   uint16
		paths     int
		taken     bool
		condition func(*loop, *link)
	}{
		"newer":          {rail: 0, was: 7, is: 9, paths: 2, taken: true},
		"as new":         {rail: 0, was: 7, is: 7, paths: 2, taken: true},
		"wrapped":        {rail: 0, was: 65535, is: 1, paths: 2, taken: true},
		"older":          {rail: 0, was: 7, is: 6, paths: 2},
		"another rail":   {rail: 5, paths: 3, taken: true},
		"one rail":       {rail: 5, paths: 2, condition: func(_ *loop, k *link) { k.several = false }},
		"theirs has end": {rail: 5, paths: 2, condition: func(_ *loop, k *link) { k.left = true }},
		"ours has end":   {rail: 5, paths: 2, condition: func(l *loop, _ *link) { l.said = true }},
		"dead":           {rail: 5, condition: func(_ *loop, k *link) { k.close() }},
	} {
		l, k := pairOfWays(t)
		k.paths[0].generation, k.paths[1].rail = c.was, 1
		if c.condition != nil {
			c.condition(l, k)
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(fds[1]) })
		p := &path{fd: fds[0], rail: c.rail, generation: c.is, in: newSeal(nil, fromDialer)}
		l.admit(k, arrival{1, p, newSeal(nil, fromListener)})
		assert.Len(t, k.paths, c.paths, name)
		assert.Equal(t, c.taken, p.fd >= 0, name)
	}
}

func TestOpeningAndClosingWithSeveralWaysLeavesNothingBehind(t *testing.T) {
	ctx := testContext(t)
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	all, _ := overCables(t, 3)
	before := descriptors()
	for i := range rounds {
		s, errs := joinAll(ctx, all)
		require.NoError(t, errors.Join(errs...))
		switch i % 3 {
		case 1:
			eachHas(t, 2, s...)
		case 2:
			_, _, _ = s[0].Control().Recv(brief(t, time.Duration(i)*3*ms), nil) // until further ways are about to open
		}
		if i%4 == 3 {
			kill(s[i/4%3])
		}
		closeAll(s)
	}
	require.Eventually(t, func() bool { return descriptors() <= before }, patience, 10*ms, "the cables' ends close a moment later")
}

func TestAPathThatComesTooEarlyOrTooLateIsClosed(t *testing.T) {
	conn := func() (near, far *net.TCPConn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		n, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		f, err := l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { n.Close(); f.Close() })
		return n.(*net.TCPConn), f.(*net.TCPConn)
	}
	over := func(far *net.TCPConn, when string) {
		require.NoError(t, far.SetDeadline(time.Now().Add(patience)))
		_, err := far.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF, when)
	}
	c := configs(t, 2)[0]
	early := newSession(c.withDefaults())
	early.end()
	near, far := conn()
	assert.NoError(t, early.takePath(near, hello{rank: 1}, nil))
	over(far, "before there is a loop")

	all, _ := overCables(t, 2)
	s := group(t, all)
	near, far = conn()
	fd, err := sock.Take(near)
	require.NoError(t, err)
	s[0].post(func() {
		s[0].mu.Lock()
		s[0].arrived = append(s[0].arrived, arrival{1, &path{fd: fd}, nil})
		s[0].mu.Unlock()
		s[0].loop.leaving, s[0].loop.quit = true, true
	})
	over(far, "in the moment in which the loop ends")
	<-s[0].over
	near, far = conn()
	assert.NoError(t, s[0].arrive(near, arrival{1, &path{}, nil}))
	over(far, "when it has ended")
}

func TestAClosedLinkKeepsNothing(t *testing.T) {
	l := &link{several: true, base: 10, wire: make([]byte, 100), acked: 30}
	l.close()
	l.trim()
	assert.Empty(t, l.wire)
	assert.False(t, l.unsent())
}

// A rank that takes bytes and never says so must not grow what is kept for it without bound.
func TestWhatIsKeptForARankThatNeverSaysIsBounded(t *testing.T) {
	for _, kept := range []uint64{maxUntaken, maxUntaken + 1} {
		l, k := pairOfWays(t)
		k.acked, k.base = 1, 1+kept-uint64(len(k.wire))
		for _, p := range k.paths {
			p.written = k.end()
		}
		l.flush()
		if kept <= maxUntaken {
			assert.Empty(t, l.deaths)
			continue
		}
		require.Len(t, l.deaths, 1)
		assert.Contains(t, l.deaths[0].Text, "does not say that it took them; at most 67108864 are kept")
	}
}
