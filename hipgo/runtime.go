package hipgo

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

// Config says which HIP runtime to load. The zero value shares the one that the process already has, else takes
// libamdhip64.so.7, .6 or .5 from where the system's linker looks, else from /opt/rocm.
type Config struct {
	Library string  // a file
	Handle  uintptr // what an engine's own dlopen returned, of a library that stays open; Library must be empty. 0: none
}

// Runtime is a loaded HIP runtime. It is never unloaded, needs no Close, and is safe for concurrent use.
type Runtime struct {
	t       *driver.Table
	library string
	version Version
	cuda    bool // HIP's calls over the CUDA driver: OpenCUDA
	within  time.Duration
}

// Open loads a HIP runtime; a second Open of it gives the same. It succeeds where there is no GPU: Count says so.
// It blocks for some 50 ms while the linker works, and 30 s at most, where a library does not load to its end. A Handle that dlopen
// never gave, or whose library is closed, is refused; dlmopen's are among them. Errors: *LoadError, of which ErrSecondRuntime where
// the process has another; *UnsupportedError after those 30 s. All are errors.ErrUnsupported.
func Open(c Config) (*Runtime, error) {
	switch {
	case c.Handle != 0 && c.Library != "":
		return nil, invalid("Config has a Library (%s) and a Handle: one of them must do", c.Library)
	case c.Handle != 0:
		return open(driverWithin, fmt.Sprintf("the library of handle %#x", c.Handle), func() (*driver.Table, error) { return driver.Adopt(c.Handle) })
	}
	return open(driverWithin, cmp.Or(c.Library, "a HIP runtime"), func() (*driver.Table, error) { return driver.Load(c.Library) })
}

func open(limit time.Duration, library string, load func() (*driver.Table, error)) (*Runtime, error) {
	return opened(bounded(limit, library, "loading it", load))
}

// OpenTable is for this module's own software device: a table that is filled already.
func OpenTable(t *driver.Table) (*Runtime, error) {
	if t == nil {
		return nil, invalid("no table of entry points: %w", errors.ErrUnsupported)
	}
	return opened(t, nil)
}

func opened(t *driver.Table, err error) (*Runtime, error) {
	if err != nil {
		return nil, err
	}
	n := t.Version()
	return &Runtime{t: t, library: t.Library(), version: Version{n / 10_000_000, n / 100_000 % 100, n % 100_000}, within: driverWithin}, nil
}

// Version is HIP's, which is not ROCm's: ROCm 10.0 has HIP 7.15.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Library is the file that was loaded.
func (r *Runtime) Library() string { return r.library }

// Version is the runtime's.
//
// Implements: hipError_t hipRuntimeGetVersion(int *runtimeVersion)
func (r *Runtime) Version() Version { return r.version }

// Feature is something that not every runtime has.
type Feature int

// The optional features.
const (
	FeatureCUMask       = Feature(driver.SymbolCUMask)       // streams with a hardware queue of their own
	FeatureCaptureMode  = Feature(driver.SymbolCaptureMode)  // calls of ours leave an engine's global capture alone
	FeatureAddressRange = Feature(driver.SymbolAddressRange) // the allocation around an address
	FeatureDMABuf       = Feature(driver.SymbolDMABuf)       // ExportDMABuf
)

// Has says whether the runtime has what f needs.
func (r *Runtime) Has(f Feature) bool { return r.t.Has(driver.Symbol(f)) }

func (r *Runtime) String() string { return r.Platform() + " " + r.version.String() + ", " + r.library }

// Count is the number of devices that the process may see, at least 1. It returns within 30 s even when the driver does not. Errors:
// ErrNoGPU; *UnsupportedError where the driver did not return.
//
// Implements: hipError_t hipGetDeviceCount(int *count)
func (r *Runtime) Count() (int, error) {
	return bounded(r.within, r.String(), "hipGetDeviceCount", r.count)
}

func (r *Runtime) count() (int, error) {
	n, code := r.t.Count()
	if err := r.check("hipGetDeviceCount", code); err != nil {
		if errors.Is(err, ErrNoGPU) {
			return 0, fmt.Errorf("hipgo: no GPU that HIP %s can use: %w", r.version, err)
		}
		return 0, fmt.Errorf("hipgo: HIP %s: %w", r.version, err)
	}
	if n <= 0 {
		return 0, fmt.Errorf("hipgo: %w: hipGetDeviceCount counts %d, %s", ErrNoGPU, n, r)
	}
	return n, nil
}
