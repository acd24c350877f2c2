package roce

import (
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	spin "github.com/hipfabric/hipfabric/fabric/internal/link"
)

// flushWithin is how long an HCA may take to give up what was posted.
const flushWithin = time.Second

// silence fails all queue pairs and takes the flush of what they had, after which no HCA touches memory that calls gave. What does not end in time is
// told, once: the memory may still be written.
func (t *Transport) silence() {
	if t.quiet {
		return
	}
	t.quiet = true
	if !flush(t.d, t.hcas) {
		t.c.Logger.Error("roce: queue pairs did not give up their requests in time; the buffers of the call that failed may still be read or written",
			"group", t.c.Group, "rank", t.rank, "within", flushWithin)
		cause := *t.cause.Load()
		cause.Kind, cause.Text = fabric.ErrDevice, cause.Text+"; and queue pairs did not give up their requests: the call's buffers may still be read or written"
		t.cause.Store(&cause)
	}
}

// flush fails the queue pairs of the HCAs, and waits until all that was posted there is over. It says whether it is.
func flush(d Driver, hcas []*hca) bool {
	until := time.Now().Add(flushWithin)
	for _, h := range hcas {
		for _, e := range h.ends {
			if err := d.Fail(e.qp.Handle); e.posted > 0 && (err != nil || e.mark() != nil) {
				return false
			}
		}
	}
	for {
		left := 0
		for _, h := range hcas {
			if _, err := h.poll(); err != nil {
				return false
			}
			for _, e := range h.ends {
				if e.completed < e.posted {
					left++
				}
			}
		}
		switch {
		case left == 0:
			return true
		case time.Now().After(until):
			return false
		}
		spin.YieldThread()
	}
}

// mark posts a request behind all others of a queue pair that has failed: once it is flushed they are over. Those that completed without being told of leave no
// other trace.
func (e *hop) mark() error {
	if e.posted == e.completed {
		return nil
	}
	e.chain[0] = Work{Remote: e.far, RKey: e.farKey}
	return e.post(1, true)
}

// drain says goodbye on every lane, and waits until the peers have all that was sent to them, for what a rank has returned from it must not
// take along when it closes. One that has said goodbye itself wants nothing more. A relayed peer has it once the rank between does, which
// stays until both have said goodbye.
func (t *Transport) drain() {
	var left []*lane
	for r := range t.peers {
		for _, l := range t.peers[r].lanes {
			if l.open() && t.bye(l) == nil {
				left = append(left, l)
			}
		}
	}
	for until := time.Now().Add(flushWithin); len(left) > 0 && time.Now().Before(until); spin.YieldThread() {
		if t.completions() != nil {
			return
		}
		left = slices.DeleteFunc(left, func(l *lane) bool { return l.completed >= l.posted || !l.relay && t.parted(l) })
	}
	if len(left) > 0 {
		t.c.Logger.Warn("roce: a peer may lack what was sent to it last: it was not acknowledged in time", "group", t.c.Group, "rank", t.rank,
			"peer", left[0].peer, "lane", left[0].name, "within", flushWithin)
	}
}

// parted says whether the peer has said goodbye on a lane. Frames before that are skipped: no call is left that wants them.
func (t *Transport) parted(l *lane) bool {
	for {
		_, there, err := l.arrival()
		if !there || err != nil {
			return err != nil
		}
		if t.isBye(&l.header) {
			return true
		}
		l.head++
	}
}

// isBye says whether a frame is a goodbye of this group's.
func (t *Transport) isBye(h *[frame.Size]byte) bool {
	got, err := frame.Parse(h)
	got.Ack = 0
	return err == nil && got == t.goodbye()
}

func (t *Transport) goodbye() frame.Header {
	n := t.notice()
	n.Kind = frame.Down
	return n
}

// bye tells the peer that nothing more comes, and a rank between that it is needed no more.
func (t *Transport) bye(l *lane) error {
	h, _ := l.stage()
	n := t.goodbye()
	n.Put(h)
	l.acknowledge(h)
	return l.send(0, Piece{}, 0, true)
}
