package bootstrap

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// rails are those of the live paths of a rank's links that have begun.
func rails(s *Session) (all []int) {
	done := make(chan []int, 1)
	if !s.post(func() {
		var live []int
		for _, k := range s.loop.links {
			for _, p := range k.paths {
				if p.in == nil {
					live = append(live, p.rail)
				}
			}
		}
		done <- live
	}) {
		return nil
	}
	select {
	case all = <-done:
	case <-s.over:
	}
	return all
}

// eachHas waits until every rank's links have want paths.
func eachHas(t *testing.T, want int, s ...*Session) {
	t.Helper()
	for _, s := range s {
		links := 1
		if s.Rank() == 0 {
			links = s.World() - 1
		}
		require.Eventually(t, func() bool { return len(rails(s)) == want*links }, patience, 10*ms, "rank %d", s.Rank())
	}
}

// talk has every rank say something to all and meet the others, in every way that there is.
func talk(t *testing.T, s []*Session, text string) {
	t.Helper()
	ctx := testContext(t)
	each(len(s), func(r int) {
		assert.NoError(t, s[r].Control().Broadcast(ctx, fmt.Appendf(nil, "%s of %d", text, r)))
		buf := make([]byte, 100)
		next := map[int]bool{}
		for range len(s) - 1 {
			n, from, err := s[r].Control().Recv(ctx, buf)
			if !assert.NoError(t, err, "rank %d", r) {
				return
			}
			assert.Equal(t, fmt.Sprintf("%s of %d", text, from), string(buf[:n]))
			assert.False(t, next[from], "rank %d heard %d twice", r, from)
			next[from] = true
		}
		blobs, err := s[r].AllGather(ctx, fmt.Appendf(nil, "%d", r))
		assert.NoError(t, err)
		assert.Len(t, blobs, len(s))
		assert.NoError(t, s[r].Control().Barrier(ctx))
	})
}

func TestTheControlConnectionOutlivesEitherOfItsWays(t *testing.T) {
	all, cables := overCables(t, 3)
	s := group(t, all)
	eachHas(t, 2, s...)
	talk(t, s, "both")
	for round := range 4 {
		cables[round%2].set(false, true)
		eachHas(t, 1, s...)
		talk(t, s, "one")
		assert.Equal(t, []int{1 - round%2}, rails(s[1]))
		cables[round%2].set(false, false)
		eachHas(t, 2, s...)
		talk(t, s, "both again")
	}
	for r := range s {
		assert.NoError(t, s[r].Cause(), "rank %d", r)
	}
	cables[0].set(false, true)
	_ = s[2].Report(&fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: -1, Text: "seen"})
	theCause(t, fabric.Cause{Kind: fabric.ErrDesync, Peer: 1, From: 2, Text: "seen"}, s...)
}

// A cable that is out says nothing: no end, no error.
func TestASilentWayDelaysNothing(t *testing.T) {
	all, cables := overCables(t, 2)
	for r := range all {
		all[r].VerdictIdle = time.Second
	}
	s := group(t, all)
	for r := range s {
		s[r].Watch(waitsFor(1-r), nil)
	}
	eachHas(t, 2, s...)
	for round := range 2 {
		cables[round].set(true, false)
		for began := time.Now(); time.Since(began) < 2*time.Second; {
			talk(t, s, "in the dark")
		}
		eachHas(t, 1, s...)
		cables[round].set(false, false)
		eachHas(t, 2, s...)
	}
	assert.NoError(t, s[0].Cause())
	assert.NoError(t, s[1].Cause())
}

func TestAGoodbyeGoesByTheWayThatIsLeft(t *testing.T) {
	for leaver := range 2 {
		all, cables := overCables(t, 2)
		s := group(t, all)
		eachHas(t, 2, s...)
		cables[0].set(true, false)
		require.NoError(t, s[leaver].Close(testContext(t)))
		stays := s[1-leaver]
		require.Eventually(t, func() bool { return stays.Status()[leaver].Left }, patience, 10*ms)
		assert.NoError(t, stays.Close(testContext(t)))
		assert.NoError(t, stays.Cause())
	}
}

func TestTheLastWaysEndIsTheLinks(t *testing.T) {
	t.Run("a process ends", func(t *testing.T) {
		all, _ := overCables(t, 3)
		s := group(t, all)
		eachHas(t, 2, s...)
		kill(s[1])
		theCause(t, peerFailed(1, 0, died), s[0], s[2])
	})
	t.Run("rank 0's process ends", func(t *testing.T) {
		all, _ := overCables(t, 3)
		s := group(t, all)
		eachHas(t, 2, s...)
		kill(s[0])
		theCause(t, *rank0Failed(), s[1], s[2])
	})
	t.Run("all cables are out", func(t *testing.T) {
		all, cables := overCables(t, 2)
		s := group(t, quick(all))
		eachHas(t, 2, s...)
		cables[0].set(true, false)
		cables[1].set(true, false)
		ways := "; the ways to it: route 127.0.0.1-127.0.0.1; route 127.0.0.1-127.0.0.1"
		theCause(t, peerFailed(1, 0, "no sign of life for 1.5s"+ways), s[0])
		rank0 := *rank0Failed()
		rank0.Text += ways
		theCause(t, rank0, s[1])
	})
}

func TestAWayThatIsDeadAtOpenIsTriedAgain(t *testing.T) {
	all, cables := overCables(t, 2)
	cables[1].set(false, true)
	s := group(t, all)
	talk(t, s, "one")
	assert.Equal(t, []int{0}, rails(s[1]))
	cables[1].set(false, false)
	eachHas(t, 2, s...)
	talk(t, s, "both")
}

// pathHello is what rank 1 says to rank 0 on its second rail.
func pathHello(s *Session, generation uint16) hello {
	return hello{version: wireVersion, role: rolePath, rank: 1, rail: 1, generation: generation, session: s.ID(), group: s.group}
}

func TestAPathThatIsNoneIsRefused(t *testing.T) {
	all, _ := overCables(t, 2)
	s := group(t, all)
	eachHas(t, 2, s...)
	knock := func(secret []byte, h hello) (*net.TCPConn, *exchange, error) {
		c, err := net.Dial("tcp", all[0].Master)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		x, _, err := dialHello(c, secret, h, func() {})
		return c.(*net.TCPConn), x, err
	}
	ends := func(c net.Conn, name string) {
		t.Helper()
		b := make([]byte, 1000)
		var err error
		for err == nil { // what rank 0 says first may come before the end
			_, err = c.Read(b)
		}
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, name)
	}
	for name, change := range map[string]func(*hello){
		"another session": func(h *hello) { h.session[3]++ },
		"another group":   func(h *hello) { h.group[3]++ },
		"another peer":    func(h *hello) { h.peer = 1 },
	} {
		h := pathHello(s[0], 100)
		change(&h)
		_, _, err := knock(testSecret, h)
		assert.ErrorIs(t, err, errRefused, name)
	}
	_, _, err := knock([]byte("a secret that is another, 32 byt"), pathHello(s[0], 100))
	assert.ErrorIs(t, err, errRefused)
	for name, change := range map[string]func(*hello){
		"rank 0":              func(h *hello) { h.rank = 0 },
		"a rank beyond":       func(h *hello) { h.rank = 2 },
		"a rail beyond":       func(h *hello) { h.rail = 2 },
		"an older generation": func(h *hello) { h.generation = 0 },
		"no generation":       func(h *hello) { h.generation = 0x8001 },
	} {
		h := pathHello(s[0], 100)
		change(&h)
		c, _, err := knock(testSecret, h)
		if err == nil {
			ends(c, name)
		}
	}
	assert.Equal(t, []int{0, 1}, rails(s[0]))
	for name, first := range map[string]func(*exchange, *net.TCPConn){
		"beyond what has come": func(x *exchange, c *net.TCPConn) {
			out, _, err := x.frames(s[0].ID())
			require.NoError(t, err)
			var w writer
			w.u64(1 << 40)
			require.NoError(t, writeFrame(c, out, framePath, w))
		},
		"another key": func(x *exchange, c *net.TCPConn) {
			require.NoError(t, writeFrame(c, newSeal([]byte("x"), fromDialer), framePath, make([]byte, 8)))
		},
	} {
		c, x, err := knock(testSecret, pathHello(s[0], 200))
		require.NoError(t, err)
		first(x, c)
		ends(c, name)
	}
	talk(t, s, "unharmed")
	eachHas(t, 2, s...)
	assert.NoError(t, s[0].Cause())
}

func TestWithOneRailNothingIsKeptOrSaid(t *testing.T) {
	s := group(t, quick(configs(t, 2)))
	talk(t, s, "plain")
	kept := make(chan bool, 1)
	require.True(t, s[0].post(func() { k := s[0].loop.links[0]; kept <- k.several || k.told > 0 || k.acked > 0 }))
	assert.False(t, <-kept)
	c, err := net.Dial("tcp", s[0].listener.addresses()[0])
	require.NoError(t, err)
	defer c.Close()
	_, _, err = dialHello(c, testSecret, hello{version: wireVersion, role: rolePath, rank: 1, session: s[0].ID(), group: s[0].group, generation: 1}, func() {})
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	assert.Error(t, err, "a pair of one rail has one path")
	talk(t, s, "still")
}

func TestWhatIsKeptIsLetGoOnceItIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		heartbeat   time.Duration
		bytes, most int // of a message, and kept in the end
	}{"with beats": {time.Second, 1000, 1000}, "without": {-1, 100_000, 2 * takenStep}} {
		all, _ := overCables(t, 2)
		for r := range all {
			all[r].Heartbeat, all[r].VerdictBusy = c.heartbeat, 5*time.Second
		}
		s := group(t, all)
		eachHas(t, 2, s...)
		ctx := testContext(t)
		message := make([]byte, c.bytes)
		each(2, func(r int) {
			for range 40 {
				if r == 0 {
					assert.NoError(t, s[0].Control().Send(ctx, 1, message), name)
					continue
				}
				n, _, err := s[1].Control().Recv(ctx, make([]byte, len(message)))
				assert.NoError(t, err, name)
				assert.Equal(t, len(message), n, name)
			}
		})
		require.Eventually(t, func() bool {
			kept := make(chan int, 1)
			return s[0].post(func() { kept <- len(s[0].loop.links[0].wire) }) && <-kept <= c.most
		}, patience, 10*ms, name)
	}
}
