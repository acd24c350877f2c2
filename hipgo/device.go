package hipgo

import (
	"fmt"
)

// Device is a GPU as the process sees it. It needs no Close and is safe for concurrent use.
type Device struct {
	rt              *Runtime
	ordinal         int
	name, arch, pci string
	integrated      bool
}

// Device gives the device of an ordinal. The environment renumbers ordinals: what lasts is the PCI id. Errors: ErrNoGPU, or an
// ordinal out of range. It is bounded as Count is.
func (r *Runtime) Device(ordinal int) (*Device, error) {
	return bounded(r.within, r.String(), fmt.Sprintf("asking what device %d is", ordinal), func() (*Device, error) {
		n, err := r.count()
		if err != nil {
			return nil, err
		}
		if ordinal < 0 || ordinal >= n {
			return nil, invalid("device %d: there are %d, numbered from 0, %s", ordinal, n, r)
		}
		return r.device(ordinal)
	})
}

// Devices gives all of them. It is bounded as Count is. Errors: ErrNoGPU.
func (r *Runtime) Devices() ([]*Device, error) {
	return bounded(r.within, r.String(), "asking what its devices are", func() ([]*Device, error) {
		n, err := r.count()
		if err != nil {
			return nil, err
		}
		all := make([]*Device, n)
		for i := range all {
			if all[i], err = r.device(i); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
}

func (r *Runtime) device(ordinal int) (*Device, error) {
	d := &Device{rt: r, ordinal: ordinal}
	name, code := r.t.Name(ordinal)
	if err := r.check("hipDeviceGetName", code); err != nil {
		return nil, err
	}
	pci, code := r.t.PCI(ordinal)
	if err := r.check("hipDeviceGetPCIBusId", code); err != nil {
		return nil, err
	}
	d.name, d.pci = name, pci
	integrated, err := d.Attribute(AttributeIntegrated)
	if err != nil {
		return nil, err
	}
	d.integrated = integrated != 0
	d.arch, err = d.findArch()
	return d, err
}

func (d *Device) findArch() (string, error) {
	arch, code := d.rt.t.Arch(d.ordinal)
	if code != codeNotSupported {
		return arch, d.rt.check("hipGetDeviceProperties", code)
	}
	major, err := d.Attribute(AttributeComputeCapabilityMajor)
	if err != nil {
		return "", err
	}
	minor, err := d.Attribute(AttributeComputeCapabilityMinor)
	return fmt.Sprintf("sm_%d%d", major, minor), err
}

// Ordinal is the device's number in this process.
func (d *Device) Ordinal() int { return d.ordinal }

// Name is the vendor's.
//
// Implements: hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device)
func (d *Device) Name() string { return d.name }

// Arch is the instruction set that code objects are built for, with its features: gfx90a:sramecc+:xnack-. sm_90 on the other
// HIP platform.
//
// Implements: hipError_t hipGetDeviceProperties(hipDeviceProp_t *prop, int deviceId)
func (d *Device) Arch() string { return d.arch }

// PCI is the device's place: 0000:c5:00.0.
//
// Implements: hipError_t hipDeviceGetPCIBusId(char *pciBusId, int len, int device)
func (d *Device) PCI() string { return d.pci }

// Integrated says that device and CPU share their memory.
func (d *Device) Integrated() bool { return d.integrated }

// Runtime is the one that the device is of.
func (d *Device) Runtime() *Runtime { return d.rt }

// String has all that a report needs: gfx1151 AMD Radeon at 0000:c5:00.0, HIP 7.15.26333, /opt/rocm/lib/libamdhip64.so.7.
func (d *Device) String() string {
	return fmt.Sprintf("%s %s at %s, %s", d.arch, d.name, d.pci, d.rt)
}

// Attribute asks the runtime for a number.
//
// Implements: hipError_t hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId)
func (d *Device) Attribute(a Attribute) (int, error) {
	v, code := d.rt.t.Attribute(d.ordinal, int(a))
	if code != 0 {
		return 0, fmt.Errorf("hipgo: %s of device %d: %w", a, d.ordinal, d.rt.fail("hipDeviceGetAttribute", code))
	}
	return v, nil
}

// Memory is the device's, in bytes.
//
// Implements: hipError_t hipMemGetInfo(size_t *free, size_t *total)
func (d *Device) Memory() (free, total uint64, err error) {
	free, total, code := d.rt.t.Memory(d.ordinal)
	return free, total, d.rt.check("hipMemGetInfo", code)
}
