package hipfabric

import (
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
)

// GPU is the one device of a group: hipgo's, or, for an engine with a HIP binding of its own, that one's dlopen handle and ordinal.
type GPU struct {
	Device *hipgo.Device
	// Library is the handle that the engine's dlopen of HIP gave; Ordinal is the device's number in it. With Device both are 0.
	Library, Ordinal uintptr
	// Gate is how the engine's streams meet the proxy; the zero Auto takes words where every rank's device can wait on stream
	// values, else kernels. The same on every rank.
	Gate stage.Gate
	// Image holds the kernels of the kernels gate for a device that the built-in image has none for; nil is the built-in one.
	// It is copied.
	Image []byte
}

// open finds the device.
func (u *GPU) open() (*hipgo.Device, error) {
	switch {
	case u.Gate != stage.Auto && u.Gate != stage.Words && u.Gate != stage.Kernels:
		return nil, fabric.Invalidf("Gate is %v; stage.Auto, stage.Words or stage.Kernels", u.Gate)
	case u.Device != nil && (u.Library != 0 || u.Ordinal != 0):
		return nil, fabric.Invalidf("GPU has a Device and a Library or Ordinal (%#x, %d); give one or the other", u.Library, u.Ordinal)
	case u.Device != nil:
		return u.Device, nil
	case u.Library == 0:
		return nil, fabric.Invalidf("GPU names no device; give a hipgo.Device, or the Library handle of your HIP binding and the Ordinal")
	}
	runtime, err := hipgo.Open(hipgo.Config{Handle: u.Library})
	if err != nil {
		return nil, err
	}
	n, err := runtime.Count()
	if err != nil {
		return nil, err
	}
	if u.Ordinal >= uintptr(n) {
		return nil, fabric.Invalidf("Ordinal is %d; %v has the devices 0 to %d", u.Ordinal, runtime, n-1)
	}
	return runtime.Device(int(u.Ordinal))
}
