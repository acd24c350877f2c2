package verbstest

import (
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// table is what package verbs calls on a host.
type table struct {
	f *Fabric
	h *Host
}

// device is one that is open: a context.
type device struct {
	handle uintptr
	h      *HCA
	events []driver.Async
	bell   bell
	left   int // objects
}

// call locks the fabric, or refuses.
func (t *table) call(verb string) syscall.Errno {
	t.f.lock()
	e := t.h.refused(verb)
	if e != 0 {
		t.f.mu.Unlock()
	}
	return e
}

// find gives an object of a handle.
func find[T any](t *table, handle uintptr) (T, syscall.Errno) {
	o, there := t.f.objects[handle].(T)
	if !there {
		return o, syscall.EINVAL
	}
	return o, 0
}

// alive is find of a context whose device works.
func (t *table) alive(handle uintptr) (*device, syscall.Errno) {
	c, e := find[*device](t, handle)
	if e == 0 && c.h.dead {
		e = syscall.EIO
	}
	return c, e
}

func (t *table) Library() string { return "verbstest" }

func (t *table) Has(s driver.Symbol) bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return s >= driver.SymbolDeviceIndex && s <= driver.SymbolDataInOrder && !t.h.lacks[s]
}

func (t *table) Absence() string { return "this host was told to have none" }

func (t *table) Devices() ([]driver.Device, syscall.Errno) {
	if e := t.call("ibv_get_device_list"); e != 0 {
		return nil, e
	}
	defer t.f.mu.Unlock()
	if t.h.noRDMA {
		return nil, syscall.ENOSYS
	}
	all := make([]driver.Device, len(t.h.hcas))
	for i, h := range t.h.hcas {
		all[i] = driver.Device{Name: h.name, Node: "uverbs" + h.name[len("mem"):], GUID: h.guid(), Index: i, NodeType: 1}
		if t.h.lacks[driver.SymbolDeviceIndex] {
			all[i].Index = -1
		}
	}
	return all, 0
}

func (t *table) Open(name string) (uintptr, syscall.Errno) {
	if e := t.call("ibv_open_device"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	for _, h := range t.h.hcas {
		if h.name != name {
			continue
		}
		if h.dead {
			return 0, syscall.EIO
		}
		b, e := newBell()
		if e != 0 {
			return 0, e
		}
		c := &device{h: h, bell: b}
		c.handle = t.f.enter(c)
		h.contexts = append(h.contexts, c)
		t.h.left.Contexts++
		return c.handle, 0
	}
	return 0, syscall.ENODEV
}

func (t *table) Close(context uintptr) syscall.Errno {
	if e := t.call("ibv_close_device"); e != 0 {
		return e
	}
	defer t.f.mu.Unlock()
	c, e := find[*device](t, context)
	if e != 0 {
		return e
	}
	if c.left > 0 {
		return syscall.EBUSY
	}
	for i, o := range c.h.contexts {
		if o == c {
			c.h.contexts = append(c.h.contexts[:i], c.h.contexts[i+1:]...)
			break
		}
	}
	delete(t.f.objects, context)
	t.h.left.Contexts--
	c.bell.close()
	return 0
}

func (t *table) Attr(context uintptr) (driver.DeviceAttr, syscall.Errno) {
	if e := t.call("ibv_query_device"); e != 0 {
		return driver.DeviceAttr{}, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e != 0 {
		return driver.DeviceAttr{}, e
	}
	return driver.DeviceAttr{
		Firmware: "verbstest", NodeGUID: c.h.guid(), MaxMRBytes: 1 << 40, MaxQP: maxQPs, MaxQPWR: 1 << 14, MaxSGE: 30, MaxCQ: 1 << 16,
		MaxCQE: 32767, MaxMR: 1 << 16, MaxPD: 1 << 12, MaxReadsIn: 16, MaxReadsOut: 16, PKeys: len(c.h.pkeys), Ports: 1,
	}, 0
}

const (
	maxQPs     = 1 << 16
	maxMessage = 1 << 30
	maxInline  = 512
)

func (t *table) Port(context uintptr, port int) (driver.Port, syscall.Errno) {
	if e := t.call("ibv_query_port"); e != 0 {
		return driver.Port{}, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e == 0 && port != 1 {
		e = syscall.EINVAL
	}
	if e != 0 {
		return driver.Port{}, e
	}
	p := driver.Port{
		State: 4, PhysicalState: 5, MaxMTU: 5, ActiveMTU: c.h.mtu, LinkLayer: 2, Width: 2, Speed: 32, MaxMessage: maxMessage,
		GIDs: gidSlots, PKeys: uint32(len(c.h.pkeys)),
	}
	if c.h.down || c.h.net == nil {
		p.State, p.PhysicalState = 1, 3
	}
	return p, 0
}

func (t *table) GIDs(context uintptr) ([]driver.GID, syscall.Errno) {
	if e := t.call("ibv_query_gid_table"); e != 0 {
		return nil, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e != 0 {
		return nil, e
	}
	return append([]driver.GID(nil), c.h.gids...), 0
}

func (t *table) PKey(context uintptr, port, index int) (uint16, syscall.Errno) {
	if e := t.call("ibv_query_pkey"); e != 0 {
		return 0, e
	}
	defer t.f.mu.Unlock()
	c, e := t.alive(context)
	if e == 0 && (port != 1 || index < 0 || index >= len(c.h.pkeys)) {
		e = syscall.EINVAL
	}
	if e != 0 {
		return 0, e
	}
	return c.h.pkeys[index], 0
}

func (t *table) AsyncFD(context uintptr) int {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if c, e := find[*device](t, context); e == 0 {
		return c.bell.fd()
	}
	return -1
}

func (t *table) AsyncEvent(context uintptr) (driver.Async, syscall.Errno) {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	c, e := find[*device](t, context)
	if e != 0 {
		return driver.Async{}, e
	}
	if len(c.events) == 0 {
		return driver.Async{}, syscall.EAGAIN
	}
	a := c.events[0]
	c.events = c.events[1:]
	if len(c.events) == 0 {
		c.bell.silence()
	}
	return a, 0
}

// Numbers of enum ibv_event_type.
const (
	eventCQError     = 0
	eventQPAccess    = 3
	eventDeviceFatal = 8
	eventPortActive  = 9
	eventPortError   = 10
	eventPKeyChange  = 12
	eventGIDChange   = 18
)

// event tells all contexts of the device.
func (h *HCA) event(kind uint32) {
	port := 1
	if kind == eventDeviceFatal {
		port = 0
	}
	for _, c := range h.contexts {
		c.tell(driver.Async{Type: kind, Port: port})
	}
}

func (c *device) tell(a driver.Async) {
	c.events = append(c.events, a)
	if len(c.events) == 1 {
		c.bell.ring()
	}
}
