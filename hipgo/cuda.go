package hipgo

import (
	"cmp"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// OpenCUDA gives HIP's calls over NVIDIA's driver, HIP's other platform: libcuda.so.1, by c.Library, by an engine's own
// handle, or from where the system's linker looks. A second OpenCUDA gives the same. Version is the driver's: CUDA 12.4 is
// 12.4.0. It is unproven until docs/receipts has one of an NVIDIA GPU: tests run it, and both gates of fabric/stage, over a stand-in for
// the driver, which has CUDA's rules as they are documented and runs kernels by their host build. That the driver assembles the PTX,
// and what its code then does, nothing here shows.
//
// A thread's current device is its current context: calls run in the device's primary context, which the runtime API uses
// too, and leave a thread with the context, or none, that it had. What differs from HIP:
//
//   - A wait has no mask: any but all ones is hipErrorNotSupported, which is errors.ErrUnsupported.
//   - Gte is cyclic, (int64)(word - value) >= 0: a word that leads by half the range or more does not meet it.
//   - No stream has a hardware queue of its own (NewStreamCUMask is unsupported), all pinned memory is coherent, and modules
//     are PTX or a cubin.
//
// It is bounded as Open is. Errors: *LoadError; ErrNoGPU where the driver counts none. Codes are HIP's; one that HIP has no name for stays CUDA's.
func OpenCUDA(c Config) (*Runtime, error) {
	load := func() (*driver.Table, string, int, error) { return driver.LoadCUDA(c.Library) }
	if c.Handle != 0 {
		if c.Library != "" {
			return nil, invalid("Config has a Library (%s) and a Handle: one of them must do", c.Library)
		}
		load = func() (*driver.Table, string, int, error) { return driver.AdoptCUDA(c.Handle) }
	}
	r, err := open(driverWithin, cmp.Or(c.Library, "the CUDA driver"), func() (*driver.Table, error) {
		t, file, code, err := load()
		if err == nil && code != 0 {
			err = &Error{Call: "cuInit", Code: code, Library: file}
		}
		return t, err
	})
	if err != nil {
		return nil, err
	}
	r.cuda = true
	return r, nil
}

// Platform is "HIP", or "CUDA" where OpenCUDA opened the runtime.
func (r *Runtime) Platform() string {
	if r.cuda {
		return "CUDA"
	}
	return "HIP"
}
