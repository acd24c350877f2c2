package measure

import (
	"context"

	"github.com/hipfabric/hipfabric/fabric"
)

// Memory is what a Device needs of the GPU beside its calls. Each method blocks until it is done.
type Memory interface {
	Alloc(n int) (fabric.DevPtr, error) // n above 0
	Free(p fabric.DevPtr) error
	Upload(to fabric.DevPtr, from []byte) error
	Download(to []byte, from fabric.DevPtr) error
}

// Device makes the calls of a bench on device memory: each is queued on Stream, on the memory that stands for the bench's host slices.
type Device struct {
	C      *fabric.StreamCollective
	Stream fabric.Stream
	Memory Memory

	in, out         []byte // the bench's own
	inPtr, outPtr   fabric.DevPtr
	inOwn, outTaken fabric.DevPtr // to be freed; 0: none
}

// place gives a bench's slices their device memory, in within out as it is on the host.
func (d *Device) place(in, out []byte) error {
	if err := d.free(); err != nil {
		return err
	}
	d.in, d.out = in, out
	var err error
	if d.outTaken, err = d.Memory.Alloc(max(len(out), 1)); err != nil {
		return err
	}
	d.outPtr = d.outTaken
	if at, ok := within(in, out); ok {
		d.inPtr = d.outPtr + fabric.DevPtr(at)
		return nil
	}
	if d.inOwn, err = d.Memory.Alloc(max(len(in), 1)); err != nil {
		return err
	}
	d.inPtr = d.inOwn
	return nil
}

// within says where in out's memory in lies: a part of a slice has the slice's last byte.
func within(in, out []byte) (at int, ok bool) {
	if cap(in) == 0 || cap(in) > cap(out) || &in[:cap(in)][cap(in)-1] != &out[:cap(out)][cap(out)-1] {
		return 0, false
	}
	return cap(out) - cap(in), true
}

func (d *Device) free() error {
	var first error
	for _, p := range []*fabric.DevPtr{&d.inOwn, &d.outTaken} {
		if *p == 0 {
			continue
		}
		if err := d.Memory.Free(*p); first == nil {
			first = err
		}
		*p = 0
	}
	return first
}

// up has the device memory hold what the slices do.
func (d *Device) up() error {
	if err := d.Memory.Upload(d.outPtr, d.out); err != nil {
		return err
	}
	return d.Memory.Upload(d.inPtr, d.in)
}

func (d *Device) down() error { return d.Memory.Download(d.out, d.outPtr) }

// settle waits until the stream has passed all that was queued.
func (d *Device) settle() error { return d.C.Wait(context.Background(), d.Stream) }

// at is the device memory of one of the two slices.
func (d *Device) at(s []byte) fabric.DevPtr {
	switch {
	case len(s) == 0:
		return 0
	case len(d.in) > 0 && &s[0] == &d.in[0]:
		return d.inPtr
	default:
		return d.outPtr
	}
}
