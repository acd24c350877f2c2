package stage

import (
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/plan"
)

// fetch brings the newest part's input down, then begins the next part: the copy stream has it before the wire has this one.
func (t *Transport) fetch() (moved bool) {
	if t.begun > t.wired {
		if j := t.job(t.begun - 1); j.phase == fetching {
			if moved = t.fetchOne(j); j.phase == fetching || t.failed.Load() != nil {
				return moved
			}
		}
	}
	return t.begin() || moved
}

// begin begins the next part, where there is one and room for it.
func (t *Transport) begin() bool {
	if t.begun-t.lifted == sets {
		return false
	}
	j := t.job(t.begun)
	*j = job{input: t.slabs.input(int(t.begun % sets)), output: t.slabs.output(int(t.begun % sets)), vector: t.slabs.vector(int(t.begun % sets)), since: t.proxy.now}
	if !t.gate.next(j) {
		return false
	}
	t.begun++
	t.fetchOne(j)
	return true
}

func (t *Transport) fetchOne(j *job) bool {
	if !j.e.vector {
		if !j.staged && !t.copied(&t.proxy.down, j, (*Transport).startVector) {
			return false
		}
		if err := j.e.learn(t, j.vector.mem); err != nil {
			t.fail(&fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: t.rank, Text: err.Error()})
			return true
		}
		t.gate.learned(j)
		j.since = t.proxy.now
		return true
	}
	if !j.staged && !t.copied(&t.proxy.down, j, (*Transport).startFetch) {
		return false
	}
	j.phase = fetched
	return true
}

func (t *Transport) startVector(j *job) (none bool, err error) {
	t.pieces = append(t.pieces[:0], plan.Piece{Bytes: 4 * t.world})
	return false, t.proxy.down.start(t.proxy, j, t.pieces, func(plan.Piece) (dst, src uintptr) {
		return j.vector.device, uintptr(j.e.call.Device.Lengths)
	})
}

func (t *Transport) startFetch(j *job) (none bool, err error) {
	e := j.e
	if e.out != nil {
		whole := e.shape.Part(j.part, t.ahead).Out
		if t.pieces = e.shape.Up(t.pieces[:0], j.part); len(t.pieces) == 1 && t.pieces[0].Bytes == whole {
			j.outPlace = e.out[t.pieces[0].Buffer:][:t.pieces[0].Bytes:t.pieces[0].Bytes]
		}
	}
	t.pieces = e.shape.Down(t.pieces[:0], j.part)
	switch {
	case len(t.pieces) == 0:
		return true, nil
	case e.in != nil && len(t.pieces) == 1:
		j.inPlace = e.in[t.pieces[0].Buffer:][:t.pieces[0].Bytes:t.pieces[0].Bytes]
		return true, nil
	case e.in != nil:
		for _, p := range t.pieces {
			copy(j.input.mem[p.Slab:][:p.Bytes], e.in[p.Buffer:])
		}
		return true, nil
	}
	in := uintptr(e.call.Device.In)
	return false, t.proxy.down.start(t.proxy, j, t.pieces, func(p plan.Piece) (dst, src uintptr) {
		return j.input.device + uintptr(p.Slab), in + uintptr(p.Buffer)
	})
}
