package stage

import (
	"github.com/hipfabric/hipfabric/fabric"
)

// wordsGate puts two operations of a call on its stream and no copy: a write of the call's ready word, and a wait on its done
// word. A copy there would wait behind the wait of the call before, in a ring that the device's other streams share.
type wordsGate struct {
	t    *Transport
	ring [ringSlots]entry // by slot of the call's number
	now  uint64           // the proxy's: the call whose parts are being begun
	part int              // of it, the next one
}

func (g *wordsGate) queue(stream uintptr, c *fabric.Call) error {
	t := g.t
	seq := t.queued.Load() + 1
	if seq-t.finished.Load() > ringSlots {
		if err := g.wait(stream, seq); err != nil {
			return err
		}
	}
	g.ring[slot(seq)].set(t, c)
	fresh := t.used.Begin(stream)
	t.queued.Store(seq)
	switch captures, err := t.d.WriteWait(stream, t.words.readyPtr(seq), seq, t.words.donePtr(seq), seq); {
	case captures:
		t.takeBack(stream, fresh)
		return wordsCapture(stream)
	case refused(err):
		return t.refuse(stream, fresh, c, err)
	case err != nil:
		return t.queueFailed(stream, c, err)
	}
	t.used.LaidOut()
	t.proxy.called()
	return nil
}

// wait is for a full ring, which a stream that is to be refused does not wait for.
func (g *wordsGate) wait(stream uintptr, seq uint64) error {
	t := g.t
	if yes, err := t.capturing(stream); err != nil {
		return err
	} else if yes {
		return wordsCapture(stream)
	}
	return t.patience(func() bool { return seq-t.finished.Load() <= ringSlots })
}

func wordsCapture(stream uintptr) error {
	return capturef("stream %#x is being captured, and the words gate cannot be: open the group with the kernels gate", stream)
}

func (g *wordsGate) capture(uintptr) (fabric.PlanTransport, error) {
	return nil, capturef("the words gate cannot be captured: its waits are no part of a graph; open the group with the kernels gate")
}

func (g *wordsGate) next(j *job) bool {
	t := g.t
	if g.part == 0 {
		if g.now == t.queued.Load() || !t.words.isReady(g.now+1) {
			return false
		}
		g.now++
	}
	e := &g.ring[slot(g.now)]
	if g.part > 0 && !e.vector {
		return false
	}
	j.e, j.seq, j.part = e, g.now, g.part
	g.part++
	if e.vector {
		g.learned(j)
	}
	return true
}

// learned says whether the part begun last is the call's last one, which its lengths decide.
func (g *wordsGate) learned(j *job) {
	if j.last = g.part == j.e.shape.Parts(); j.last {
		g.part = 0
	}
}

func (g *wordsGate) passed(*job) {}
func (g *wordsGate) busy() bool  { return false }
func (g *wordsGate) free() error { return nil }
