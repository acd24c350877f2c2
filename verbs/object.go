package verbs

import (
	"sync"
	"syscall"
)

// object is what a context made. Its calls hold mu, so that none meets the object's end.
type object struct {
	c    *Context
	what string
	mu   sync.Mutex
	h    uintptr
	over bool
}

// enter holds the object until mu.Unlock.
func (o *object) enter() error {
	o.mu.Lock()
	if o.over {
		o.mu.Unlock()
		return o.closed()
	}
	return nil
}

func (o *object) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

//go:noinline
func (o *object) closed() error { return closed(o.what + " of " + o.c.device.d.Name) }

// end destroys the object once. One that could not be destroyed is whole again.
func (o *object) end(self child, call string, destroy func(uintptr) syscall.Errno) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return nil
	}
	o.c.hide(self)
	if e := destroy(o.h); e != 0 {
		o.c.show(self)
		return o.c.fault(call, e)
	}
	o.over = true
	o.c.forget(self)
	return nil
}
