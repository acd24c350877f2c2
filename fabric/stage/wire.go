package stage

import (
	"encoding/binary"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
)

// move drives the part that is on the wire.
func (t *Transport) move() bool {
	if t.wired == t.begun {
		return false
	}
	j := t.job(t.wired)
	switch j.phase {
	case fetched:
		j.phase, j.round = wiring, j.part
		t.send(j)
	case wiring:
		done, err := t.flight.Poll()
		if err != nil {
			t.fail(fabric.CauseOf(err))
			return true
		}
		if !done {
			return false
		}
		t.sent(j)
	default:
		return false
	}
	return true
}

// send puts the next thing of a job on the wire: the agreement on its parts, or a part.
func (t *Transport) send(j *job) {
	e := j.e
	var c fabric.Call
	switch {
	case !e.agreed:
		c = t.ask(j)
	case j.round >= e.rounds:
		t.sent(j) // a window that no rank has bytes for
		return
	default:
		c = e.part(t, j, j.round)
	}
	flight, err := t.inner.Begin(c)
	if err != nil {
		t.fail(fabric.CauseOf(err))
		return
	}
	t.flight = flight
}

// sent goes on from what the wire has carried.
func (t *Transport) sent(j *job) {
	switch e := j.e; {
	case j.asking:
		j.asking = false
		largest := t.answer()
		if largest > maxBlock {
			t.fail(&fabric.Cause{Kind: fabric.ErrDesync, Peer: -1, From: t.rank, Text: fmt.Sprintf("rank %d: an all-to-all-v with a block of %d bytes", t.rank, largest)})
			return
		}
		e.agree(int(largest))
		t.send(j)
	case j.last && j.round+1 < e.rounds && e.call.Op == fabric.AllToAllV:
		j.round++ // other ranks have more parts
		t.send(j)
	default:
		j.phase, j.since = lifting, t.proxy.now
		if j.staged {
			j.phase = landed
		}
		t.wired++
	}
}

// ask is an all-to-all-v of one number a rank: the longest block that each has.
func (t *Transport) ask(j *job) fabric.Call {
	j.asking = true
	half := len(t.asked) / 2
	for r := range t.world {
		binary.LittleEndian.PutUint64(t.asked[8*r:], uint64(j.e.shape.Longest()))
		t.lengths[r], t.lengths[t.world+r] = 8, 8
	}
	return fabric.Call{Op: fabric.AllToAllV, In: t.asked[:half], Out: t.asked[half:], Lengths: t.lengths[:t.world], InLengths: t.lengths[t.world:]}
}

func (t *Transport) answer() (largest uint64) {
	for r := range t.world {
		largest = max(largest, binary.LittleEndian.Uint64(t.asked[len(t.asked)/2+8*r:]))
	}
	return largest
}

// maxBlock is beyond any machine.
const maxBlock = 1 << 40
