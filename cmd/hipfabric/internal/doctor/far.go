package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/fabric"
)

const (
	waitTime = 24 * time.Hour   // for a peer, again and again
	idleTime = 30 * time.Second // between two orders
)

// Serve is the listening end: it lets one peer after the other measure, until ctx ends, or, with once, until one has.
// tell hears a line a peer. Its error is nil when ctx ends; otherwise a setting that is wrong or an address that cannot
// be bound, and, with once, what kept the one peer from measuring.
func Serve(ctx context.Context, e Ends, once bool, tell func(string)) error {
	for {
		s, err := join(ctx, e, farRank, waitTime)
		if ctx.Err() != nil {
			if s != nil {
				s.close()
			}
			return nil
		}
		if err != nil {
			// A peer that leaves while it joins, or of another version, is no reason to stop.
			if !errors.Is(err, fabric.ErrMismatch) && !errors.Is(err, fabric.ErrPeerFailed) && !errors.Is(err, fabric.ErrTimeout) {
				return err
			}
		} else {
			err = serve(s, tell)
			s.close()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			tell("a peer did not get to the end: " + err.Error())
		}
		if once {
			return err
		}
	}
}

// serve follows one peer's orders.
func serve(s *session, tell func(string)) error {
	self := look(s.ctx)
	var before map[string]int64
	for {
		o, err := next(s)
		if err != nil {
			return err
		}
		if err := o.check(); err != nil {
			_ = s.say(answer{Err: err.Error()})
			return err
		}
		var a answer
		switch o.What {
		case orderMeet:
			conns, err := open(s, 1)
			if err != nil {
				return err
			}
			self.at(conns[0].LocalAddr())
			from := conns[0].RemoteAddr().String()
			closeAll(conns)
			before = machine.Tally(self.Interface)
			name := ""
			if o.Host != nil {
				name = o.Host.Name
			}
			tell(fmt.Sprintf("measured by %s (%q)", from, name))
			a.Host = &self
		case orderTrips:
			err = serveTrips(s, o)
		case orderRate:
			a.Half, err = serveRate(s, o)
		case orderEnd:
			self.Changes = changes(self.Interface, before)
			return s.say(answer{Host: &Host{Changes: self.Changes}})
		default:
			err = fmt.Errorf("an unknown order %q", o.What)
		}
		if err != nil {
			a.Err = err.Error()
		}
		if err := s.say(a); err != nil {
			return err
		}
	}
}

func next(s *session) (order, error) {
	ctx, cancel := context.WithTimeout(s.ctx, idleTime)
	defer cancel()
	var o order
	err := s.hear(ctx, &o)
	return o, err
}

func serveTrips(s *session, o order) error {
	conns, err := open(s, 1)
	if err != nil {
		return err
	}
	return echo(s.ctx, conns[0], o.Wait, time.Duration(o.Ns))
}

func serveRate(s *session, o order) (*half, error) {
	conns, err := open(s, max(o.Lanes, 1))
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	move := send
	if o.ToFar {
		move = receive
	}
	h := move(s.ctx, conns, time.Duration(o.Ns))
	return &h, nil
}
