package stage

import (
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// lift brings the oldest result up, and ends its job.
func (t *Transport) lift() bool {
	if t.lifted == t.wired {
		return false
	}
	j := t.job(t.lifted)
	if j.phase == lifting && !t.copied(&t.proxy.up, j, (*Transport).startLift) {
		return false
	}
	queued := !j.staged || j.d.eager // asked before done is stored: a plan may be released then, and its descriptors used anew
	t.gate.passed(j)
	if j.last || j.staged {
		t.words.finish(j.seq)
		if queued {
			t.finished.Add(1)
		}
	}
	t.lifted++
	return true
}

func (t *Transport) startLift(j *job) (none bool, err error) {
	t.pieces = j.e.shape.Up(t.pieces[:0], j.part)
	if j.outPlace != nil || len(t.pieces) == 0 {
		return true, nil
	}
	if j.e.out != nil {
		for _, p := range t.pieces {
			copy(j.e.out[p.Buffer:][:p.Bytes], j.output.mem[p.Slab:])
		}
		return true, nil
	}
	out := uintptr(j.e.call.Device.Out)
	return false, t.proxy.up.start(t.proxy, j, t.pieces, func(p plan.Piece) (dst, src uintptr) {
		return out + uintptr(p.Buffer), j.output.device + uintptr(p.Slab)
	})
}
