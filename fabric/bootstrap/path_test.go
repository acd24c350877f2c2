//go:build linux || darwin

package bootstrap

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// tb is what a testing.T and a rapid.T share.
type tb interface {
	require.TestingT
	Helper()
}

// twin is one end of a link without a loop.
type twin struct {
	*link
	t       tb
	sent    [][]byte
	got     [][]byte
	scratch []byte
}

// twins are both ends of a link of several rails, and its ways, each of which is a socket pair.
type twins struct {
	t     tb
	ends  [2]*twin
	ways  [][2]*path
	count int
}

func newTwins(t tb) *twins {
	w := &twins{t: t}
	d, l := newSeal([]byte("key"), fromDialer), newSeal([]byte("key"), fromListener)
	d2, l2 := newSeal([]byte("key"), fromDialer), newSeal([]byte("key"), fromListener)
	w.ends[0] = &twin{link: &link{peer: 1, out: d, in: l, several: true}, t: t, scratch: make([]byte, 3000)}
	w.ends[1] = &twin{link: &link{peer: 0, out: l2, in: d2, several: true}, t: t, scratch: make([]byte, 3000)}
	w.open()
	return w
}

// open adds a way; all but the first begin with a frame of their own.
func (w *twins) open() {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(w.t, err)
	key := fmt.Appendf(nil, "path %d", w.count)
	d, l := newSeal(key, fromDialer), newSeal(key, fromListener)
	d2, l2 := newSeal(key, fromDialer), newSeal(key, fromListener)
	p, q := &path{fd: fds[0]}, &path{fd: fds[1]}
	for _, fd := range fds {
		require.NoError(w.t, unix.SetNonblock(fd, true))
		require.NoError(w.t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	}
	if w.count > 0 {
		p.in, q.in = l, d
		w.ends[0].add(p, d2)
		w.ends[1].add(q, l2)
	} else {
		w.ends[0].paths, w.ends[1].paths = []*path{p}, []*path{q}
	}
	w.count++
	w.ways = append(w.ways, [2]*path{p, q})
}

// cut ends a way with all that is on it.
func (w *twins) cut(i int) {
	for end, p := range w.ways[i] {
		w.ends[end].remove(p)
	}
	w.ways = append(w.ways[:i], w.ways[i+1:]...)
}

func (w *twins) close() {
	for _, e := range w.ends {
		e.close()
	}
}

func (e *twin) say(b []byte) {
	e.sent = append(e.sent, b)
	e.send(frameMessage, b)
}

func (e *twin) push(p *path) {
	e.t.Helper()
	require.NoError(e.t, e.write(p))
	e.trim()
	require.LessOrEqual(e.t, e.base, e.acked, "what may be asked for again is kept")
}

func (e *twin) pull(p *path) {
	e.t.Helper()
	_, ended, err := e.read(p, e.scratch, func(t frameType, b []byte) error {
		if t == frameTaken {
			return e.heardTaken(b)
		}
		e.got = append(e.got, bytes.Clone(b))
		return nil
	})
	require.NoError(e.t, ended)
	require.NoError(e.t, err)
}

func (w *twins) settle() {
	for range 200 {
		for i, e := range w.ends {
			e.tell(1)
			for _, way := range w.ways {
				e.push(way[i])
				w.ends[1-i].pull(way[1-i])
			}
		}
	}
}

func TestFramesComeOnceAndInOrderWhileOnePathLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTwins(t)
		defer w.close()
		words := rapid.SliceOfN(rapid.Byte(), 0, 6000)
		which := func(what string) (end, way int) {
			return rapid.IntRange(0, 1).Draw(t, what), rapid.IntRange(0, len(w.ways)-1).Draw(t, "way")
		}
		t.Repeat(map[string]func(*rapid.T){
			"say": func(t *rapid.T) { w.ends[rapid.IntRange(0, 1).Draw(t, "end")].say(words.Draw(t, "words")) },
			"push": func(*rapid.T) {
				end, way := which("end")
				w.ends[end].push(w.ways[way][end])
			},
			"pull": func(*rapid.T) {
				end, way := which("end")
				w.ends[end].pull(w.ways[way][end])
			},
			"tell": func(t *rapid.T) { w.ends[rapid.IntRange(0, 1).Draw(t, "end")].tell(1) },
			"open": func(t *rapid.T) {
				if len(w.ways) == 4 {
					t.Skip("enough")
				}
				w.open()
			},
			"cut": func(t *rapid.T) {
				if len(w.ways) == 1 {
					t.Skip("the last one")
				}
				w.cut(rapid.IntRange(0, len(w.ways)-1).Draw(t, "way"))
			},
		})
		w.settle()
		for i, e := range w.ends {
			got := w.ends[1-i].got
			require.Len(t, got, len(e.sent), "end %d", i)
			for k := range got {
				require.Equal(t, len(e.sent[k]), len(got[k]), "end %d, frame %d", i, k)
				require.True(t, bytes.Equal(e.sent[k], got[k]), "end %d, frame %d", i, k)
			}
			require.Less(t, len(e.wire), 200, "end %d: what has been taken is let go", i)
		}
	})
}

func TestAPathThatTakesNothingIsClosedAtItsBound(t *testing.T) {
	w := newTwins(t)
	defer w.close()
	w.open()
	w.settle()
	fast, slow := w.ways[0], w.ways[1]
	message := make([]byte, 60_000)
	var why error
	most := 0
	for n := 0; why == nil && n < 100; n++ {
		w.ends[0].say(message)
		for range 1000 {
			w.ends[0].push(slow[0])
			w.ends[0].push(fast[0])
			w.ends[1].pull(fast[1])
			if w.ends[0].unsent() {
				continue
			}
			break
		}
		w.ends[1].tell(1)
		w.ends[1].push(fast[1])
		w.ends[0].pull(fast[0])
		most = max(most, len(w.ends[0].wire))
		require.NoError(t, w.ends[0].useless(fast[0], time.Now()))
		why = w.ends[0].useless(slow[0], time.Now())
	}
	require.ErrorIs(t, why, errBehind)
	assert.Greater(t, most, maxBehind)
	assert.Less(t, most, 2*maxBehind+2*len(message))
	w.cut(1)
	require.NoError(t, w.ends[0].useless(fast[0], time.Now()))
	w.settle()
	assert.Less(t, len(w.ends[0].wire), 200, "nothing is kept for a path that is closed")
}

func TestAPathIsStalledOnlyWhileItOwesAndAnotherLives(t *testing.T) {
	w := newTwins(t)
	defer w.close()
	w.open()
	e, now := w.ends[1], time.Now()
	later := func(d time.Duration) time.Time { now = now.Add(d); return now }
	slow, fast := w.ways[1][1], w.ways[0][1]
	assert.NoError(t, e.useless(slow, now), "it has not begun, and has time for it")
	assert.NoError(t, e.useless(slow, later(pathStall-1)))
	w.settle()
	assert.NoError(t, e.useless(slow, later(pathStall)), "bytes came")
	assert.NoError(t, e.useless(slow, later(100*pathStall)), "nothing is owed")
	w.ends[0].say([]byte("x"))
	w.ends[0].push(w.ways[0][0])
	e.pull(fast)
	assert.NoError(t, e.useless(fast, now))
	assert.NoError(t, e.useless(slow, now))
	assert.NoError(t, e.useless(slow, later(pathStall-1)))
	assert.ErrorIs(t, e.useless(slow, later(1)), errStalled)
	for range 3 { // however far behind, it moves
		w.ends[0].push(w.ways[1][0])
		e.pull(slow)
		w.ends[0].say([]byte("x"))
		w.ends[0].push(w.ways[0][0])
		e.pull(fast)
		assert.NoError(t, e.useless(slow, later(pathStall)))
	}
	assert.ErrorIs(t, e.useless(slow, later(pathStall)), errStalled)
	assert.NoError(t, e.useless(fast, now))
	e.remove(fast)
	assert.NoError(t, e.useless(slow, now), "the last one is the link")
}

func TestAPathThatBeginsWrongIsRefused(t *testing.T) {
	first := func(kind frameType, payload []byte) []byte {
		return newSeal([]byte("key"), fromDialer).append(nil, kind, payload)
	}
	place := func(n uint64) []byte { var w writer; w.u64(n); return w }
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"beyond":       {first(framePath, place(101)), "a path begins at byte 101; 100 have come"},
		"another type": {first(frameTaken, place(7)), "does not say where it begins"},
		"short":        {first(framePath, nil), "does not say where it begins"},
		"long":         {first(framePath, make([]byte, 9)), "does not say where it begins"},
		"another key":  {newSeal([]byte("yek"), fromDialer).append(nil, framePath, place(7)), "wrong MAC"},
		"reflected":    {newSeal([]byte("key"), fromListener).append(nil, framePath, place(7)), "wrong MAC"},
	} {
		p := &path{in: newSeal([]byte("key"), fromDialer)}
		_, err := p.begin(append(c.b, make([]byte, pathFrame)...), 100)
		assert.ErrorIs(t, err, errFrame, name)
		assert.ErrorContains(t, err, c.want, name)
	}
	p := &path{in: newSeal([]byte("key"), fromDialer)}
	whole := append(first(framePath, place(100)), "stream"...)
	for _, b := range whole[:pathFrame-1] {
		rest, err := p.begin([]byte{b}, 100)
		require.NoError(t, err)
		require.Empty(t, rest)
	}
	rest, err := p.begin(whole[pathFrame-1:], 100)
	require.NoError(t, err)
	assert.Equal(t, "stream", string(rest))
	assert.Equal(t, uint64(100), p.at)
}

func TestWhatWasTakenIsChecked(t *testing.T) {
	l := &link{base: 100, wire: make([]byte, 50), acked: 110}
	for _, n := range []uint64{109, 151, 1 << 63} {
		var w writer
		w.u64(n)
		assert.ErrorIs(t, l.heardTaken(w), errFrame, "%d", n)
	}
}
