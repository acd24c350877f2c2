package gpu

import (
	"errors"
	"fmt"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// Picked is the device of this process. Close it when nothing uses it.
type Picked struct {
	Device *hipgo.Device
	// Why says why it is the software device; "" of a real GPU.
	Why   string
	world *hiptest.World
}

// Pick opens the chosen device. Of several real GPUs auto takes the one of this rank among the host's.
func Pick(c Choice, library string, localRank int) (*Picked, error) {
	if c.kind == Software {
		return software("asked for")
	}
	device, err := real(c, library, localRank)
	switch {
	case err == nil:
		return &Picked{Device: device}, nil
	case c.kind == "" && library == "" && errors.Is(err, errors.ErrUnsupported):
		return software(err.Error())
	default:
		return nil, Kind(err)
	}
}

func real(c Choice, library string, localRank int) (*hipgo.Device, error) {
	runtime, err := load(library, c.kind == "cuda")
	if err != nil {
		return nil, err
	}
	if c.kind != "" {
		n, err := runtime.Count()
		if err != nil {
			return nil, err
		}
		if c.ordinal >= n {
			return nil, fabric.Invalidf("--device %s:%d: %v has the GPUs 0 to %d", c.kind, c.ordinal, runtime, n-1)
		}
		return runtime.Device(c.ordinal)
	}
	return runtime.Choose(hipgo.Selector{LocalRank: localRank})
}

// load opens HIP, or its other platform.
func load(library string, cuda bool) (*hipgo.Runtime, error) {
	if cuda {
		return hipgo.OpenCUDA(hipgo.Config{Library: library})
	}
	return hipgo.Open(hipgo.Config{Library: library})
}

func software(why string) (*Picked, error) {
	all, err := Several(1, why)
	if err != nil {
		return nil, fmt.Errorf("no real GPU (%s), and the software device: %w", why, err)
	}
	return all[0], nil
}

// Several are n software devices, for as many ranks in one process. The Close of any ends all.
func Several(n int, why string) ([]*Picked, error) {
	world, err := hiptest.New(hiptest.Settings{Devices: n})
	if err != nil {
		return nil, err
	}
	all := make([]*Picked, n)
	for i := range all {
		all[i] = &Picked{Device: world.Device(i), Why: why, world: world}
	}
	return all, nil
}

// String says which device it is, for people.
func (p *Picked) String() string {
	if p.world != nil {
		return "the software device (" + p.Why + ")"
	}
	return p.Device.String()
}

// Software says whether it is no real GPU.
func (p *Picked) Software() bool { return p.world != nil }

// Close ends the software device; a real one stays as it is.
func (p *Picked) Close() error {
	if p.world == nil {
		return nil
	}
	return p.world.Close()
}
