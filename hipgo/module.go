package hipgo

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Bounds of a launch's arguments.
const (
	MaxArguments     = 64   // of one launch
	MaxArgumentBytes = 4096 // all together
)

// Module is a loaded code object.
type Module struct {
	d      *Device
	raw    uintptr
	kept   unsafe.Pointer // C memory: the runtime reads the image as long as the module lives
	closed atomic.Bool
}

// Function is a kernel, worth until its module's Close.
type Function struct {
	m    *Module
	raw  uintptr
	name string
}

// LoadModule loads a code object, a bundle of them, or whatever else the platform takes. The image is copied. Errors:
// errors.ErrUnsupported where it is the image that will not do, of which code 209 where it has nothing for the device's arch.
//
// Implements: hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
func (d *Device) LoadModule(image []byte) (*Module, error) {
	raw, kept, err := d.load(image)
	if err != nil {
		return nil, err
	}
	return &Module{d: d, raw: raw, kept: kept}, nil
}

func (d *Device) load(image []byte) (uintptr, unsafe.Pointer, error) {
	if len(image) == 0 {
		return 0, nil, invalid("an empty image; %s", d)
	}
	raw, kept, code := d.rt.t.ModuleLoad(d.ordinal, image)
	if code != 0 {
		return 0, nil, fmt.Errorf("hipgo: an image of %d bytes for %s %s: %w", len(image), d.arch, d.name, d.imageFault("hipModuleLoadData", code))
	}
	return raw, kept, nil
}

// imageFault tells what an image is to blame for from what the device is.
func (d *Device) imageFault(call string, code int) error {
	err := d.rt.fail(call, code)
	switch code {
	case codeInvalidValue, codeInsufficientDriver, codeInvalidImage, codeNoBinaryForGPU, codeInvalidKernelFile, codeInvalidSource,
		codeSharedObjectInitFailed, codeNotFound:
		return imageError{err}
	}
	return err
}

// imageError is what HIP said of an image: errors.ErrUnsupported as well.
type imageError struct{ error }

func (imageError) Is(target error) bool { return target == errors.ErrUnsupported } //nolint:errorlint // a sentinel, by identity

func (e imageError) Unwrap() error { return e.error }

// Raw is the hipModule_t.
func (m *Module) Raw() uintptr { return m.raw }

// Function finds a kernel. Errors: errors.ErrUnsupported where the module has none of that name.
//
// Implements: hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *kname)
func (m *Module) Function(name string) (Function, error) {
	if m.closed.Load() {
		return Function{}, closed("module")
	}
	raw, err := m.d.function(m.raw, name)
	return Function{m: m, raw: raw, name: name}, err
}

func (d *Device) function(module uintptr, name string) (uintptr, error) {
	raw, code := d.rt.t.ModuleFunction(d.ordinal, module, name)
	if code != 0 {
		return 0, fmt.Errorf("hipgo: kernel %q: %w", name, d.imageFault("hipModuleGetFunction", code))
	}
	return raw, nil
}

// Raw is the hipFunction_t.
func (f Function) Raw() uintptr { return f.raw }

// Close unloads the module, not before its kernels have run. A second Close does nothing.
//
// Implements: hipError_t hipModuleUnload(hipModule_t module)
func (m *Module) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	code := m.d.rt.t.ModuleUnload(m.d.ordinal, m.raw, m.kept)
	if code != 0 {
		m.closed.Store(false)
	}
	return m.d.rt.check("hipModuleUnload", code)
}

// Launch queues a kernel on blocks of threads, with shared bytes of dynamic shared memory. Each of args is one parameter, laid
// out as C lays it out; all are copied. One struct by value needs no allocation here.
//
// Implements: hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned int gridDimX, ..., hipStream_t stream,
// void **kernelParams, void **extra)
func (s Stream) Launch(f Function, grid, block [3]int, shared int, args ...[]byte) error {
	if err := s.usable(); err != nil {
		return err
	}
	switch {
	case f.m == nil:
		return invalid("a zero Function: find one in a Module first")
	case f.m.closed.Load():
		return closed("module of kernel " + f.name)
	case len(args) > MaxArguments:
		return invalid("kernel %s: %d arguments; at most %d", f.name, len(args), MaxArguments)
	case shared < 0 || shared > 1<<30:
		return invalid("kernel %s: %d bytes of shared memory", f.name, shared)
	}
	dims := driver.Dims{Shared: uint32(shared)}
	for i := range 3 {
		if grid[i] < 1 || block[i] < 1 || grid[i] > 1<<31-1 || block[i] > 1<<16 {
			return invalid("kernel %s: grid %v of block %v: each must be 1 or more", f.name, grid, block)
		}
		dims.Grid[i], dims.Block[i] = uint32(grid[i]), uint32(block[i])
	}
	var sizes [MaxArguments]uint32
	total := 0
	for i, a := range args {
		sizes[i] = uint32(len(a))
		total += len(a)
	}
	if total > MaxArgumentBytes {
		return invalid("kernel %s: %d bytes of arguments; at most %d", f.name, total, MaxArgumentBytes)
	}
	return s.d.launch(s.raw, f.raw, dims, packed(args, total), sizes[:len(args)])
}

func packed(args [][]byte, total int) []byte {
	if len(args) == 1 {
		return args[0]
	}
	all := make([]byte, 0, total)
	for _, a := range args {
		all = append(all, a...)
	}
	return all
}

func (d *Device) launch(stream, function uintptr, dims driver.Dims, args []byte, sizes []uint32) error {
	return d.rt.check("hipModuleLaunchKernel", d.rt.t.Launch(d.ordinal, stream, function, dims, args, sizes))
}
