package roce

import (
	"time"

	"github.com/hipfabric/hipfabric/fabric"
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
	}
}

// mark posts a request behind all others of a queue pair that has failed: once it is flushed they are over. Those that completed without being told of leave no
// other trace.
func (e *hop) mark() error {
	if e.posted == e.completed {
		return nil
	}
	e.chain[0] = e.word(creditAt, 0)
	return e.post(1, true)
}
