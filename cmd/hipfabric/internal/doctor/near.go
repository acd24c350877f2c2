package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/machine"
	"github.com/hipfabric/hipfabric/fabric"
)

// Question is what the asking end wants to know.
type Question struct {
	Ends
	FarCommand string // that makes the peer listen, for the findings
	Lanes      []int  // numbers of lanes to measure, each 1 to MaxLanes
	Time       time.Duration
	Timeout    time.Duration // of all of it
}

// Length is about how long the measurement itself takes.
func (q Question) Length() time.Duration { return q.Time * time.Duration(2+2*len(q.Lanes)) }

// Ask measures the way to the peer; tell, when not nil, hears what it is at. It ends by Timeout at the latest, and what
// is known by then, which may be only why the peer was not reached, is in the report. Its errors are ctx's end, and the
// settings that no group can be made of.
func Ask(ctx context.Context, q Question, tell func(string)) (*Report, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	if tell == nil {
		tell = func(string) {}
	}
	began := time.Now()
	r := &Report{Schema: Schema, Date: began.UTC().Format(time.RFC3339), Peer: q.Peer, FarCommand: q.FarCommand, Near: look(ctx),
		Trips: []RoundTrips{}, Rates: []Rate{}}
	tell("looking for " + q.Peer)
	s, err := join(ctx, q.Ends, nearRank, min(reachTime, q.Timeout/2))
	if err != nil {
		if whole.Err() != nil {
			return nil, err
		}
		r.NotReached, err = diagnose(ctx, q.Peer, began, err)
		if whole.Err() != nil {
			err = fmt.Errorf("interrupted: %w", whole.Err())
		}
		if err != nil {
			return nil, err
		}
	} else {
		err = q.measure(s, r, tell)
		s.close()
		if whole.Err() != nil {
			return nil, fmt.Errorf("interrupted: %w", whole.Err())
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.CutShort = fmt.Sprintf("not done within %v", q.Timeout)
		} else if err != nil {
			r.CutShort = err.Error()
		}
	}
	r.Findings = Findings(r)
	return r, nil
}

func (q Question) measure(s *session, r *Report, tell func(string)) error {
	if err := meet(s, r); err != nil {
		return err
	}
	before := machine.Tally(r.Near.Interface)
	for _, wait := range []string{Spinning, Blocking} {
		tell("round trips, " + wait)
		if err := q.askTrips(s, r, wait); err != nil {
			return err
		}
	}
	stalled := map[string]bool{}
	for _, lanes := range q.Lanes {
		for _, direction := range []string{ToPeer, FromPeer} {
			if stalled[direction] {
				continue // every other run would wait as long for the same answer
			}
			tell(fmt.Sprintf("rate %s, lanes %d", direction, lanes))
			rate, err := q.askRate(s, lanes, direction)
			if err != nil {
				return err
			}
			r.Rates = append(r.Rates, rate)
			stalled[direction] = rate.Stalled
		}
	}
	end, err := request(s, order{What: orderEnd}, acceptTime)
	if err != nil {
		return err
	}
	r.Near.Changes = changes(r.Near.Interface, before)
	if end.Host != nil {
		r.Far.Changes = end.Host.Changes
	}
	return nil
}

// meet exchanges what the ends know of themselves, over a first lane that shows which addresses the way has.
func meet(s *session, r *Report) error {
	if err := s.say(order{What: orderMeet, Host: &Host{Name: r.Near.Name}}); err != nil {
		return err
	}
	conns, err := open(s, 1)
	if err != nil {
		return err
	}
	defer closeAll(conns) // not before the answer: the far end takes a closed one for a dialer that gave up
	r.Near.at(conns[0].LocalAddr())
	a, err := response(s, acceptTime)
	if err != nil {
		return err
	}
	if a.Host == nil {
		return errors.New("the other end said nothing of itself")
	}
	r.Far = a.Host
	return nil
}

func (q Question) askTrips(s *session, r *Report, wait string) error {
	if err := s.say(order{What: orderTrips, Wait: wait, Ns: int64(q.Time)}); err != nil {
		return err
	}
	conns, err := open(s, 1)
	if err != nil {
		return err
	}
	t, err := trips(s.ctx, conns[0], wait, q.Time)
	if err != nil {
		return fmt.Errorf("round trips, %s: %w", wait, err)
	}
	r.Trips = append(r.Trips, t)
	_, err = response(s, q.Time+acceptTime)
	return err
}

func (q Question) askRate(s *session, lanes int, direction string) (Rate, error) {
	toFar := direction == ToPeer
	if err := s.say(order{What: orderRate, Lanes: lanes, Ns: int64(q.Time), ToFar: toFar}); err != nil {
		return Rate{}, err
	}
	conns, err := open(s, lanes)
	if err != nil {
		return Rate{}, err
	}
	defer closeAll(conns)
	move := receive
	if toFar {
		move = send
	}
	mine := move(s.ctx, conns, q.Time)
	a, err := response(s, q.Time+acceptTime)
	if err != nil {
		return Rate{}, err
	}
	if a.Half == nil {
		return Rate{}, errors.New("the other end did not say what it measured")
	}
	if toFar {
		return rateOf(lanes, direction, mine, *a.Half), nil
	}
	return rateOf(lanes, direction, *a.Half, mine), nil
}

// open dials, or accepts, so many lanes within a bounded time.
func open(s *session, lanes int) ([]*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, acceptTime)
	defer cancel()
	var conns []*net.TCPConn
	for range lanes {
		c, err := s.lane(ctx)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func request(s *session, o order, wait time.Duration) (answer, error) {
	if err := s.say(o); err != nil {
		return answer{}, err
	}
	return response(s, wait)
}

func response(s *session, wait time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	var a answer
	if err := s.hear(ctx, &a); err != nil {
		return a, fmt.Errorf("waiting for the other end's answer: %w", err)
	}
	if a.Err != "" {
		return a, fmt.Errorf("the other end: %s", a.Err)
	}
	return a, nil
}

// Validate names the first setting that is out of its bounds.
func (q Question) Validate() error {
	if len(q.Lanes) == 0 || len(q.Lanes) > MaxLanes {
		return fabric.Invalidf("--lanes has %d numbers; 1 to %d are allowed", len(q.Lanes), MaxLanes)
	}
	for _, n := range q.Lanes {
		if n < 1 || n > MaxLanes {
			return fabric.Invalidf("--lanes has %d, outside 1..%d", n, MaxLanes)
		}
	}
	switch {
	case q.Time < minTime || q.Time > MaxTime:
		return fabric.Invalidf("--time is %v, outside %v..%v", q.Time, minTime, MaxTime)
	case q.Timeout <= q.Length():
		return fabric.Invalidf("--timeout is %v, and the measurements alone take %v; raise it, or lower --time", q.Timeout, q.Length())
	}
	return nil
}
