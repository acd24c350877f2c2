package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/conform"
)

// Schema names the form of a Report's JSON.
const Schema = "hipfabric.doctor.hip/1"

// Report is what a host's HIP runtime and its GPUs are.
type Report struct {
	Schema  string `json:"schema"`
	Library string `json:"library,omitempty"` // the file that was loaded
	Version string `json:"version,omitempty"` // of HIP
	None    string `json:"none,omitempty"`    // why there is no GPU
	GPUs    []One  `json:"gpus"`
	err     error
}

// One is a GPU.
type One struct {
	Ordinal     int    `json:"ordinal"`
	Name        string `json:"name"`
	Arch        string `json:"arch"`
	PCI         string `json:"pci"`
	MemoryBytes uint64 `json:"memory_bytes"`
	Integrated  bool   `json:"integrated"`
	SelfTest    string `json:"self_test_failed,omitempty"` // why its streams cannot wait on values; "" when they can
	Kernels     string `json:"kernels_failed,omitempty"`   // why the built-in kernels do not load; "" when they do

	Conform *conform.Report `json:"conform,omitempty"`

	err error
}

// Question is what Examine looks at.
type Question struct {
	Library string        // "" is the one that the loader finds
	CUDA    bool          // NVIDIA's driver, HIP's other platform
	Conform time.Duration // run hipgo/conform too, with this bound of one wait for the device; 0: not
}

// Examine opens the library and tries each of its GPUs. What it finds wrong is in the Report.
func Examine(ctx context.Context, q Question) Report {
	r := Report{Schema: Schema, GPUs: []One{}}
	runtime, err := load(q.Library, q.CUDA)
	if err == nil {
		r.Library, r.Version = runtime.Library(), runtime.Version().String()
		var devices []*hipgo.Device
		if devices, err = runtime.Devices(); err == nil {
			for _, d := range devices {
				r.GPUs = append(r.GPUs, examine(ctx, d, q.Conform))
			}
			if len(devices) == 0 {
				err = hipgo.ErrNoGPU
			}
		}
	}
	if err != nil {
		r.None, r.err = err.Error(), err
	}
	return r
}

func examine(ctx context.Context, d *hipgo.Device, bound time.Duration) One {
	g := One{Ordinal: d.Ordinal(), Name: d.Name(), Arch: d.Arch(), PCI: d.PCI(), Integrated: d.Integrated()}
	_, g.MemoryBytes, g.err = d.Memory()
	waits := d.SelfTest(ctx)
	if waits != nil {
		g.SelfTest = waits.Error()
	}
	module, loads := d.LoadModule(hipfabric.BuiltinKernels(d))
	if loads == nil {
		loads = module.Close()
	}
	if loads != nil {
		g.Kernels = loads.Error()
	}
	if g.err == nil && waits != nil && loads != nil {
		g.err = fmt.Errorf("GPU %d, %s: no gate can use it: %w", g.Ordinal, g.Arch, errors.Join(waits, loads))
	}
	if bound > 0 {
		receipt := conform.Run(ctx, d, conform.Options{Bound: bound})
		if g.Conform = &receipt; !receipt.OK() {
			g.err = errors.Join(g.err, fmt.Errorf("%w: GPU %d, %s: %d of %d checks of conform failed", fabric.ErrDevice, g.Ordinal, g.Arch, receipt.Count(conform.Fail), len(receipt.Checks)))
		}
	}
	return g
}

// Err is the reason for another exit code than 0: no GPU, or one that cannot be used.
func (r Report) Err() error {
	errs := []error{Kind(r.err)}
	for _, g := range r.GPUs {
		errs = append(errs, Kind(g.err))
	}
	return errors.Join(errs...)
}

// Kind gives an error of hipgo the module's: what cannot be done here is its ErrUnsupported already, any other failed call is ErrDevice.
func Kind(err error) error {
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	for _, known := range []error{fabric.ErrInvalid, fabric.ErrDevice} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", fabric.ErrDevice, err)
}
