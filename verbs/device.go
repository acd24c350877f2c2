package verbs

import (
	"fmt"
	"syscall"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// Device is an HCA as libibverbs lists it. It needs no Close.
type Device struct {
	lib *Library
	d   driver.Device
}

// Name is the kernel's: rxe0, mlx5_0.
//
// Implements: const char *ibv_get_device_name(struct ibv_device *device)
func (d *Device) Name() string { return d.d.Name }

// Node is the device's file: /dev/infiniband/uverbs0.
func (d *Device) Node() string { return "/dev/infiniband/" + d.d.Node }

// GUID is the node's.
//
// Implements: __be64 ibv_get_device_guid(struct ibv_device *device)
func (d *Device) GUID() uint64 { return d.d.GUID }

// Index is the kernel's number of the device, or -1 without FeatureDeviceIndex.
//
// Implements: int ibv_get_device_index(struct ibv_device *device)
func (d *Device) Index() int { return d.d.Index }

// IsChannelAdapter says that it speaks InfiniBand's transport, which RoCE is, and not iWARP or another.
func (d *Device) IsChannelAdapter() bool { return d.d.NodeType == 1 && d.d.Transport == 0 }

// Library is the one that lists it.
func (d *Device) Library() *Library { return d.lib }

// String has what a report needs.
func (d *Device) String() string {
	return fmt.Sprintf("%s (%s, GUID %016x)", d.d.Name, d.Node(), d.d.GUID)
}

// Open opens the device. Errors: one that names the device's file and what it lacks.
//
// Implements: struct ibv_context *ibv_open_device(struct ibv_device *device)
func (d *Device) Open() (*Context, error) {
	h, e := d.lib.t.Open(d.d.Name)
	if e != 0 {
		return nil, d.refused(e)
	}
	c := &Context{t: d.lib.t, device: d, h: h}
	if c.attr, e = c.t.Attr(h); e != 0 {
		_ = c.t.Close(h) // the first error is what matters
		return nil, c.fault("ibv_query_device", e)
	}
	var err error
	if c.events, err = park(c.t.AsyncFD(h), d.d.Name+" events"); err != nil {
		_ = c.t.Close(h)
		return nil, fmt.Errorf("verbs: the events of %s: %w", d.d.Name, err)
	}
	return c, nil
}

func (d *Device) refused(e syscall.Errno) error {
	err := &Error{Call: "ibv_open_device", Device: d.d.Name, Errno: e}
	switch e {
	case syscall.EACCES, syscall.EPERM:
		return fmt.Errorf("verbs: %w: this user needs to read and write %s", err, d.Node())
	case syscall.ENOENT, syscall.ENODEV, syscall.ENXIO:
		return fmt.Errorf("verbs: %w: %s is not here; a container needs --device=/dev/infiniband", err, d.Node())
	}
	return fmt.Errorf("verbs: %w", err)
}
