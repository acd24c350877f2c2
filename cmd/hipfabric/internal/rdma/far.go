package rdma

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/fabric"
)

const (
	waitTime = 24 * time.Hour   // for a peer, again and again
	idleTime = 30 * time.Second // between two orders
	pingTime = 10 * time.Second // for all messages of an order
)

// Serve is the listening end: it lets one peer after the other try queue pairs, until ctx ends, or, with once, until one has.
// tell hears a line a peer. Its error is nil when ctx ends; otherwise a setting that is wrong or an address that cannot be bound,
// and, with once, what kept the one peer from it.
func Serve(ctx context.Context, sys *System, e doctor.Ends, once bool, tell func(string)) error {
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
			f := &far{session: s, sys: sys, tell: tell}
			err = f.serve()
			f.shut()
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

// far is the listening end of one session.
type far struct {
	*session
	sys  *System
	tell func(string)
	self *Host
	open *end
}

// serve follows one peer's orders.
func (f *far) serve() error {
	for {
		var o order
		if err := f.hear(idleTime, &o); err != nil {
			return err
		}
		if err := o.check(); err != nil {
			_ = f.say(answer{Err: err.Error()})
			return err
		}
		var a answer
		switch o.What {
		case orderMeet:
			if err := f.meet(o, &a); err != nil {
				return err
			}
		case orderOpen:
			f.shut()
			a.fail(f.connect(o, &a))
		case orderPing:
			a.fail(f.pong(o, &a))
		case orderShut:
			f.shut()
		case orderEnd:
			f.shut()
			a.Host = f.changed()
			return f.say(a)
		default:
			a.fail(fmt.Errorf("an unknown order %q", o.What))
		}
		if err := f.say(a); err != nil {
			return err
		}
	}
}

func (f *far) meet(o order, a *answer) error {
	c, err := f.lane()
	if err != nil {
		return err
	}
	from := c.RemoteAddr().String()
	_ = c.Close() // it was only to show addresses
	name := ""
	if o.Host != nil {
		name = o.Host.Name
	}
	f.tell(fmt.Sprintf("asked by %s (%q)", from, name))
	f.self = f.sys.Look(f.ctx)
	a.Host = f.self.told()
	return nil
}

func (f *far) connect(o order, a *answer) error {
	lib, err := f.sys.Load()
	if err != nil {
		return err
	}
	if f.open, err = newEnd(lib, o.End.Device, o.End.Port, o.End.Index); err != nil {
		return err
	}
	if err := f.open.connect(*o.Door, o.MTU); err != nil {
		return err
	}
	door := f.open.door()
	a.Door = &door
	return nil
}

func (f *far) pong(o order, a *answer) error {
	if f.open == nil {
		return errors.New("no queue pair is open")
	}
	ctx, cancel := within(f.ctx, pingTime, "the messages")
	defer cancel()
	var err error
	a.Wrong, err = f.open.pong(ctx, o.Bytes, o.Count)
	return err
}

func (f *far) shut() {
	if f.open != nil {
		f.open.close()
		f.open = nil
	}
}

// changed is what the counters say now.
func (f *far) changed() *Host {
	if f.self == nil {
		return nil
	}
	f.sys.recount(f.self)
	h := &Host{}
	for _, d := range f.self.Devices {
		short := Device{Name: d.Name}
		for _, p := range d.Ports {
			short.Ports = append(short.Ports, Port{Number: p.Number, Changes: p.Changes})
		}
		h.Devices = append(h.Devices, short)
	}
	return h
}
