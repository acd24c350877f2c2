package rdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/fabric"
)

const (
	joinTime = 5 * time.Second // for the peer to be met
	lookTime = 2 * time.Minute // for the peer to look at itself: a port whose writes are lost takes seconds
)

// Question is what is to be known besides this host.
type Question struct {
	Ends       doctor.Ends // Peer "" asks no listening host
	FarCommand string      // that makes the peer listen, for the findings
	Reach      []string    // addresses to find the way to, hosts without port
	Timeout    time.Duration
}

// Examine looks at this host, finds the ways to addresses, and tries queue pairs with a listening host. It ends by Timeout at the
// latest, and what is known by then is in the report. tell, when not nil, hears what it is at. Its errors are ctx's end, and the
// settings that no group can be made of.
func Examine(ctx context.Context, sys *System, q Question, tell func(string)) (*Report, error) {
	whole := ctx
	ctx, cancel := within(ctx, q.Timeout, "all of it")
	defer cancel()
	if tell == nil {
		tell = func(string) {}
	}
	tell("looking at this host")
	r := &Report{Schema: Schema, Date: time.Now().UTC().Format(time.RFC3339), Reach: []Reach{}}
	r.Host = *sys.Look(ctx)
	for _, peer := range q.Reach {
		tell("finding the way to " + peer)
		r.Reach = append(r.Reach, reach(ctx, &r.Host, peer))
	}
	if q.Ends.Peer != "" {
		if err := q.meet(ctx, sys, r, tell); err != nil && whole.Err() == nil {
			return nil, err
		}
	}
	if whole.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", whole.Err())
	}
	r.Findings = Findings(r)
	return r, nil
}

// meet fills the report's Meeting.
func (q Question) meet(ctx context.Context, sys *System, r *Report, tell func(string)) error {
	m := &Meeting{Peer: q.Ends.Peer, FarCommand: q.FarCommand, Rails: []Rail{}}
	r.Meeting = m
	host, _, _ := net.SplitHostPort(q.Ends.Peer)
	tell("looking for " + q.Ends.Peer)
	s, err := join(ctx, q.Ends, nearRank, min(joinTime, q.Timeout/2))
	if err == nil {
		err = q.try(s, sys, r, tell)
		s.close()
		if err != nil {
			m.CutShort = err.Error()
		}
		if ctx.Err() != nil {
			m.CutShort = context.Cause(ctx).Error()
		}
		err = nil
	} else if m.Missed = missed(err); m.Missed == "" {
		return err
	} else {
		m.Text = err.Error()
		err = nil
	}
	r.Reach = append(r.Reach, reach(ctx, &r.Host, host))
	return err
}

// missed is why a join failed; "" when that is none of the way's.
func missed(err error) string {
	switch {
	case errors.Is(err, fabric.ErrUnauthorized):
		return Unauthorized
	case errors.Is(err, fabric.ErrMismatch):
		return Mismatch
	case strings.Contains(err.Error(), "a group is running there"):
		return Busy
	case errors.Is(err, fabric.ErrTimeout) || errors.Is(err, fabric.ErrPeerFailed):
		return NotMet
	}
	return ""
}

// try exchanges what the ends have, then tries every rail.
func (q Question) try(s *session, sys *System, r *Report, tell func(string)) error {
	m := r.Meeting
	if err := s.say(order{What: orderMeet, Host: &Host{Name: r.Host.Name}}); err != nil {
		return err
	}
	c, err := s.lane()
	if err != nil {
		return err
	}
	m.Address, m.FarAddress = plain(c.LocalAddr()), plain(c.RemoteAddr())
	a, err := response(s, lookTime)
	_ = c.Close() // not before the answer: the far end takes a closed one for a dialer that gave up
	if err != nil {
		return err
	}
	if m.Far = a.Host; m.Far == nil {
		return errors.New("the other end said nothing of itself: " + a.Err)
	}
	lib, _ := sys.Load() // where there is none there are no rails
	m.Rails = rails(&r.Host, m.Far)
	for i := range m.Rails {
		rail := &m.Rails[i]
		tell(fmt.Sprintf("queue pairs from %s to %s", rail.Near.Device, rail.Far.Device))
		near, err := newEnd(lib, rail.Near.Device, rail.Near.Port, rail.Near.Index)
		if err != nil {
			rail.fail(StepOpen, "this host: "+err.Error(), cause(err))
			continue
		}
		err = rail.try(s, near)
		near.close()
		if err != nil {
			return err
		}
	}
	end, err := request(s, order{What: orderEnd}, answerTime)
	if err != nil {
		return err
	}
	sys.recount(&r.Host)
	m.Far.take(end.Host)
	return nil
}

// try has messages go each way. Its error is the session's; the rail's own is in the rail.
func (r *Rail) try(s *session, near *end) error {
	door := near.door()
	a, err := request(s, order{What: orderOpen, End: &r.Far, MTU: r.MTU, Door: &door}, answerTime)
	if err != nil {
		return err
	}
	if a.Err != "" || a.Door == nil {
		r.fail(StepConnect, "the peer: "+a.Err, a.Cause)
		return nil
	}
	if err := near.connect(*a.Door, r.MTU); err != nil {
		r.fail(StepConnect, "this host: "+err.Error(), cause(err))
	}
	for _, kind := range []struct {
		step         string
		bytes, count int
	}{{StepSmall, smallBytes, smallTrips}, {StepLarge, largeBytes, largeTrips}} {
		if r.Failed != "" {
			break
		}
		if err := s.say(order{What: orderPing, Bytes: kind.bytes, Count: kind.count}); err != nil {
			return err
		}
		ctx, cancel := within(s.ctx, pingTime, "the messages")
		trips, failed := near.ping(ctx, kind.bytes, kind.count)
		cancel()
		a, err := response(s, pingTime+answerTime)
		if err != nil {
			return err
		}
		trips.Wrong += a.Wrong
		switch waited := errors.Is(failed, context.DeadlineExceeded); {
		case failed != nil && (!waited || a.Err == ""):
			r.fail(kind.step, "this host: "+failed.Error(), cause(failed))
		case a.Err != "":
			r.fail(kind.step, "the peer: "+a.Err, a.Cause)
		default:
			r.Trips = append(r.Trips, trips)
		}
	}
	_, err = request(s, order{What: orderShut}, answerTime)
	return err
}

func (r *Rail) fail(step, text, cause string) { r.Step, r.Failed, r.Cause = step, text, cause }

// take adds the changes that the host's own end counted.
func (h *Host) take(changed *Host) {
	if changed == nil {
		return
	}
	for _, c := range changed.Devices {
		for i := range h.Devices {
			for j := range h.Devices[i].Ports {
				for _, p := range c.Ports {
					if h.Devices[i].Name == c.Name && h.Devices[i].Ports[j].Number == p.Number {
						h.Devices[i].Ports[j].Changes = p.Changes
					}
				}
			}
		}
	}
}

func plain(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().String()
	}
	return a.String()
}

func request(s *session, o order, wait time.Duration) (answer, error) {
	if err := s.say(o); err != nil {
		return answer{}, err
	}
	return response(s, wait)
}

func response(s *session, wait time.Duration) (answer, error) {
	var a answer
	if err := s.hear(wait, &a); err != nil {
		return a, fmt.Errorf("waiting for the other end's answer: %w", err)
	}
	return a, nil
}
