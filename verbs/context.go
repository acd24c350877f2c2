package verbs

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Context is an open device.
type Context struct {
	t      driver.Table
	device *Device
	attr   driver.DeviceAttr
	events *parking

	live sync.RWMutex // calls hold it, Close takes it
	h    uintptr      // 0: closed

	books sync.Mutex // leaf: none of ours is locked under it. An event is taken and its object found under it: once acknowledged, its handle may be another's
	made  int
	own   map[child]int // what was made and is not closed, by its turn
	qps   map[uint32]*QP
	cqs   map[uintptr]*CQ
}

type child interface{ Close() error }

// enter holds the context open until live.RUnlock.
func (c *Context) enter() error {
	c.live.RLock()
	if c.h == 0 {
		c.live.RUnlock()
		return closed(c.device.d.Name)
	}
	return nil
}

// adopt enters what was made in the books.
func (c *Context) adopt(o child) {
	c.books.Lock()
	defer c.books.Unlock()
	if c.own == nil {
		c.own, c.qps, c.cqs = map[child]int{}, map[uint32]*QP{}, map[uintptr]*CQ{}
	}
	c.made++
	c.own[o] = c.made
	c.list(o)
}

func (c *Context) list(o child) {
	switch o := o.(type) {
	case *QP:
		c.qps[o.number] = o
	case *CQ:
		c.cqs[o.h] = o
	}
}

// hide comes before the device may give number or handle away again; show, where it did not.
func (c *Context) hide(o child) {
	c.books.Lock()
	defer c.books.Unlock()
	switch o := o.(type) {
	case *QP:
		delete(c.qps, o.number)
	case *CQ:
		delete(c.cqs, o.h)
	}
}

func (c *Context) show(o child) {
	c.books.Lock()
	defer c.books.Unlock()
	c.list(o)
}

func (c *Context) forget(o child) {
	c.books.Lock()
	defer c.books.Unlock()
	delete(c.own, o)
}

func (c *Context) qp(number uint32) *QP {
	c.books.Lock()
	defer c.books.Unlock()
	return c.qps[number]
}

// qpByHandle is called under books.
func (c *Context) qpByHandle(h uintptr) *QP {
	for _, q := range c.qps {
		if q.h == h {
			return q
		}
	}
	return nil
}

// Close closes what is left of the context's own, the last first, and the device. NextEvent returns. What failed to close stays
// for another Close.
//
// Implements: int ibv_close_device(struct ibv_context *context)
func (c *Context) Close() error {
	for {
		var failed []error
		for _, o := range c.left() {
			failed = append(failed, o.Close())
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		over, err := c.end()
		if over && err == nil {
			c.events.close() // not under live, for which who waits may wait
		}
		if over {
			return err
		}
	}
}

// left is what was made and is not closed, the last first.
func (c *Context) left() []child {
	c.books.Lock()
	defer c.books.Unlock()
	left := make([]child, 0, len(c.own))
	for o := range c.own {
		left = append(left, o)
	}
	slices.SortFunc(left, func(a, b child) int { return cmp.Compare(c.own[b], c.own[a]) })
	return left
}

// end is not over where somebody made something meanwhile.
func (c *Context) end() (over bool, err error) {
	c.live.Lock()
	defer c.live.Unlock()
	if c.h == 0 {
		return true, nil
	}
	if len(c.left()) > 0 {
		return false, nil
	}
	e := c.t.Close(c.h)
	if e == 0 {
		c.h = 0
	}
	return true, c.check("ibv_close_device", e)
}

// Device is the one that is open.
func (c *Context) Device() *Device { return c.device }

// DeviceAttr is what a device is and can.
type DeviceAttr struct {
	Firmware                          string
	NodeGUID                          uint64
	VendorID, PartID, HardwareVersion uint32
	MaxMRBytes                        uint64 // of one registration
	MaxQP, MaxQPWR, MaxSGE            int
	MaxCQ, MaxCQE, MaxMR, MaxPD       int
	MaxReadsIn, MaxReadsOut           int // RDMA reads at a time on a queue pair, from the peer and to it
	PKeys, Ports                      int
}

// Attr gives the device's limits, as they were when it was opened.
//
// Implements: int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
func (c *Context) Attr() DeviceAttr {
	a := c.attr
	return DeviceAttr{
		Firmware: a.Firmware, NodeGUID: a.NodeGUID, VendorID: a.VendorID, PartID: a.PartID, HardwareVersion: a.HardwareVersion,
		MaxMRBytes: a.MaxMRBytes, MaxQP: a.MaxQP, MaxQPWR: a.MaxQPWR, MaxSGE: a.MaxSGE, MaxCQ: a.MaxCQ, MaxCQE: a.MaxCQE,
		MaxMR: a.MaxMR, MaxPD: a.MaxPD, MaxReadsIn: a.MaxReadsIn, MaxReadsOut: a.MaxReadsOut, PKeys: a.PKeys, Ports: a.Ports,
	}
}

// check makes an error of an errno.
func (c *Context) check(call string, e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return c.fault(call, e)
}

// fault is apart from check, so that a hot call inlines the comparison only.
//
//go:noinline
func (c *Context) fault(call string, e syscall.Errno) error {
	return &Error{Call: call, Device: c.device.d.Name, Errno: e}
}
