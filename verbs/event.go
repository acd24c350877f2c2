package verbs

import (
	"context"
	"fmt"
	"syscall"
)

// EventType says what happened to a device.
type EventType uint32

// The events that code decides on; String knows all.
const (
	EventCQError     EventType = 0
	EventQPFatal     EventType = 1
	EventQPRequest   EventType = 2
	EventQPAccess    EventType = 3
	EventDeviceFatal EventType = 8
	EventPortActive  EventType = 9
	EventPortError   EventType = 10
	EventLIDChange   EventType = 11
	EventPKeyChange  EventType = 12
	EventGIDChange   EventType = 18
)

// String is libibverbs' text.
//
// Implements: const char *ibv_event_type_str(enum ibv_event_type event)
func (e EventType) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("unknown event %d", uint32(e))
}

var eventNames = [...]string{
	"CQ error",
	"local work queue catastrophic error",
	"invalid request local work queue error",
	"local access violation work queue error",
	"communication established",
	"send queue drained",
	"path migrated",
	"path migration request error",
	"local catastrophic error",
	"port active",
	"port error",
	"LID change",
	"P_Key change",
	"SM change",
	"SRQ catastrophic error",
	"SRQ limit reached",
	"last WQE reached",
	"client reregistration",
	"GID table change",
	"WQ fatal",
}

// AsyncEvent is something that happened to a device, or to a part of it.
type AsyncEvent struct {
	Type EventType
	Port int // of a port's events; else 0
	QP   *QP // of a queue pair's events, while it is open; else nil
	CQ   *CQ // alike
}

func (e AsyncEvent) String() string {
	switch {
	case e.Port != 0:
		return fmt.Sprintf("%s, port %d", e.Type, e.Port)
	case e.QP != nil:
		return fmt.Sprintf("%s, queue pair %#x", e.Type, e.QP.number)
	}
	return e.Type.String()
}

// NextEvent waits for the device's next event and takes it; one waits at a time. It ends by ctx, whose error it then returns,
// or by Close: os.ErrClosed.
//
// Implements: int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event), void
// ibv_ack_async_event(struct ibv_async_event *event)
func (c *Context) NextEvent(ctx context.Context) (AsyncEvent, error) {
	var event AsyncEvent
	err := c.events.wait(ctx, func() (there bool, err error) {
		event, there, err = c.Event()
		return there, err
	})
	return event, c.ended(err)
}

// Event takes the device's next event if there is one. It does not block.
//
// Implements: int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event), void
// ibv_ack_async_event(struct ibv_async_event *event)
func (c *Context) Event() (event AsyncEvent, there bool, err error) {
	if err := c.enter(); err != nil {
		return AsyncEvent{}, false, err
	}
	defer c.live.RUnlock()
	c.books.Lock()
	defer c.books.Unlock()
	got, e := c.t.AsyncEvent(c.h)
	if e == syscall.EAGAIN {
		return AsyncEvent{}, false, nil
	}
	if e != 0 {
		return AsyncEvent{}, false, c.fault("ibv_get_async_event", e)
	}
	event = AsyncEvent{Type: EventType(got.Type), Port: got.Port}
	if got.Handle != 0 {
		if event.Type == EventCQError {
			event.CQ = c.cqs[got.Handle]
		} else {
			event.QP = c.qpByHandle(got.Handle)
		}
	}
	return event, true, nil
}

// EventFD is readable while Event has one; -1 where there is no such descriptor. It is the context's, and must not be read or closed.
func (c *Context) EventFD() int {
	if c.enter() != nil {
		return -1
	}
	defer c.live.RUnlock()
	return c.t.AsyncFD(c.h)
}

// ended makes os.ErrClosed of a wait that Close ended.
func (c *Context) ended(err error) error {
	c.live.RLock()
	defer c.live.RUnlock()
	if err != nil && c.h == 0 {
		return closed(c.device.d.Name)
	}
	return err
}
