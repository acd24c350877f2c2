package roce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
	spin "github.com/hipfabric/hipfabric/fabric/internal/link"
)

// probe sends a frame on every lane and waits for the peers'. Its error names the lanes that stay silent.
func (t *Transport) probe(ctx context.Context) error {
	var silent []*lane
	for r := range t.peers {
		for _, l := range t.peers[r].lanes {
			h, _ := l.stage()
			n := t.notice()
			n.Put(h)
			if err := l.send(0, Piece{}, 0, false); err != nil {
				return err
			}
			silent = append(silent, l)
		}
	}
	began := time.Now()
	for {
		if err := t.completions(); err != nil {
			return err
		}
		left := silent[:0]
		for _, l := range silent {
			heard, err := t.greeted(l)
			if err != nil {
				return err
			}
			if !heard {
				left = append(left, l)
			}
		}
		if silent = left; len(silent) == 0 {
			return nil
		}
		late := t.c.Timeout > 0 && time.Since(began) > t.c.Timeout
		if late || ctx.Err() != nil {
			var errs []error
			for _, l := range silent {
				errs = append(errs, fmt.Errorf("no frame came from rank %d in %v by %s: the cable, the switch or a firewall", l.peer, time.Since(began), l.name))
			}
			return errors.Join(errs...)
		}
		spin.YieldThread()
	}
}

// notice is a frame of no call.
func (t *Transport) notice() frame.Header {
	return frame.Header{Binding: t.layout.Header.Binding, Kind: frame.Ack, Rank: frame.NoRank}
}

// greeted takes a lane's first frame, where it has come.
func (t *Transport) greeted(l *lane) (bool, error) {
	_, there, err := l.arrival()
	if err != nil || !there {
		return false, err
	}
	h, err := frame.Parse(&l.header)
	if err == nil {
		if h.Ack = 0; h != t.notice() {
			err = fmt.Errorf("it is %s of session %#x", h.Describe(), h.Binding)
		}
	}
	if err != nil {
		return false, &fabric.Cause{Kind: fabric.ErrPeerFailed, Peer: l.peer, From: -1, Text: fmt.Sprintf("the first frame by %s is none of this group's: %v", l.name, err), Err: err}
	}
	if err := l.heard(frame.AckOf(&l.header)); err != nil {
		return false, err
	}
	return true, l.took()
}
