package bootstrap

import (
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// handle acts on one frame from k. An error ends the link: the other end broke the protocol. b is worth until handle
// returns.
func (l *loop) handle(k *link, t frameType, b []byte) error {
	if k.left {
		return fmt.Errorf("%w: type %d after a goodbye", errFrame, t)
	}
	switch t {
	case frameVerdict:
		cause, err := l.heardCause(b)
		if err != nil {
			return err
		}
		l.settle(cause, k)
		return nil
	case frameGoodbye:
		l.heardGoodbye(k)
		return nil
	case frameBeat:
		return l.heardBeat(k, b)
	case frameTaken:
		return k.heardTaken(b)
	}
	if l.said {
		return nil
	}
	if l.rank == 0 {
		return l.handleAtHub(k, t, b)
	}
	return l.handleFromHub(t, b)
}

// handleAtHub is rank 0's side.
func (l *loop) handleAtHub(k *link, t frameType, b []byte) error {
	switch t {
	case frameReport:
		cause, err := l.heardCause(b)
		if err != nil {
			return err
		}
		cause.From = k.peer
		l.report(cause)
		return nil
	case frameRecords:
		return l.gotRecords(k.peer, b)
	case frameGather:
		return l.heardGather(k.peer, b)
	case frameMessage:
		return l.relay(k.peer, b)
	case frameCredit:
		return l.relayCredit(k.peer, b)
	case frameEnter:
		return l.heardEnter(k.peer, b)
	case frameSubGather:
		m, err := l.heardSubBlob(b)
		if err == nil && m.rank != k.peer {
			err = fmt.Errorf("%w: rank %d brings a blob of rank %d", errFrame, k.peer, m.rank)
		}
		if err != nil {
			return err
		}
		return l.gatherSub(m)
	case frameSubReport:
		c, err := l.heardSubCause(b)
		if err == nil && c.set&(1<<k.peer) == 0 {
			err = fmt.Errorf("%w: rank %d reports for a sub-group of ranks %x", errFrame, k.peer, c.set)
		}
		if err != nil {
			return err
		}
		c.cause.From = k.peer
		l.reportSub(c)
		return nil
	case frameSubLeft:
		return l.heardSubLeft(k.peer, b)
	default:
		return fmt.Errorf("%w: type %d is not for rank 0", errFrame, t)
	}
}

// handleFromHub is the side of every other rank.
func (l *loop) handleFromHub(t frameType, b []byte) error {
	switch t {
	case frameLeft:
		r := reader{b: b}
		rank := r.rank()
		if err := r.end("leave"); err != nil {
			return err
		}
		return l.noteLeft(rank)
	case frameGathered:
		return l.s.heardGathered(b)
	case frameMessage:
		return l.s.control.heardMessage(b)
	case frameCredit:
		return l.s.control.heardCredit(b)
	case frameRelease:
		return l.s.control.heardRelease(b)
	case frameSubGathered:
		m, err := l.heardSubBlob(b)
		if err == nil {
			l.gotSubBlob(m)
		}
		return err
	case frameSubVerdict:
		c, err := l.heardSubCause(b)
		if err == nil {
			l.heardSubVerdict(c)
		}
		return err
	default:
		return fmt.Errorf("%w: type %d is not from rank 0", errFrame, t)
	}
}

// heardCause takes causes that name ranks of this group only.
func (l *loop) heardCause(b []byte) (*fabric.Cause, error) {
	c, err := decodeCause(b)
	if err == nil && (c.Peer >= l.s.cfg.World || c.From >= l.s.cfg.World) {
		err = fmt.Errorf("%w: a cause that names ranks %d and %d of %d", errFrame, c.Peer, c.From, l.s.cfg.World)
	}
	return c, err
}

func (l *loop) heardBeat(k *link, b []byte) error {
	p, err := decodeProgress(b)
	if err != nil {
		return err
	}
	l.known[k.peer] = p
	s := l.s
	s.mu.Lock()
	s.status[k.peer].Progress, s.beats[k.peer] = p, time.Now()
	s.mu.Unlock()
	return nil
}

// heardGoodbye notes a clean leave, which fails nobody.
func (l *loop) heardGoodbye(k *link) {
	k.left = true
	if l.rank == 0 {
		var w writer
		w.rank(k.peer)
		for _, other := range l.links {
			other.send(frameLeft, w)
		}
	}
	_ = l.noteLeft(k.peer)
	l.maybeEndRecords()
}

func (l *loop) noteLeft(rank int) error {
	if rank < 0 || rank >= l.s.cfg.World || rank == l.rank {
		return fmt.Errorf("%w: rank %d left, world %d", errFrame, rank, l.s.cfg.World)
	}
	l.known[rank] = fabric.Progress{Peer: -1}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.left |= 1 << rank
	l.s.notify()
	return nil
}
