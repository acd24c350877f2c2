// Command staged is an engine's work on device memory at its smallest: every rank has a vector on its GPU, kernels of the engine's
// would fill it, and one call queued on the engine's stream sums it over all ranks. Start it with:
// hipfabric run -n 2 -- staged. Without a GPU, with -software.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const count = 1 << 18 // numbers in the vector: two parts of a call

func main() {
	log.SetFlags(0)
	software := flag.Bool("software", false, "on the software device")
	flag.Parse()
	if err := run(context.Background(), *software); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, software bool) error {
	cfg, err := hipfabric.FromEnv()
	if errors.Is(err, launch.ErrNone) {
		cfg = hipfabric.Config{World: 1}
	} else if err != nil {
		return err
	}
	device, end, err := open(cfg.LocalRank, software)
	if err != nil {
		return err
	}
	group, err := hipfabric.Open(ctx, cfg)
	if err != nil {
		return err
	}
	sum, err := decode(ctx, group, device)
	if err == nil {
		fmt.Printf("rank %d of %d: %v, on %v\n", group.Rank(), group.World(), sum, device)
		err = group.Control().Barrier(ctx) // nobody leaves while another still calls
	}
	if err = errors.Join(err, group.Close(ctx)); err != nil {
		return err
	}
	return end()
}

// open finds this rank's GPU. An engine with a HIP binding of its own skips this and gives Device its library and ordinal.
func open(localRank int, software bool) (*hipgo.Device, func() error, error) {
	if software {
		world, err := hiptest.New(hiptest.Settings{})
		if err != nil {
			return nil, nil, err
		}
		return world.Device(0), world.Close, nil
	}
	runtime, err := hipgo.Open(hipgo.Config{})
	if err != nil {
		return nil, nil, err
	}
	device, err := runtime.Choose(hipgo.Selector{LocalRank: localRank})
	return device, func() error { return nil }, err
}

// decode stands for a step of a model: work on a stream, a call in between, work on its result. It gives the first number.
func decode(ctx context.Context, group *hipfabric.Group, device *hipgo.Device) (first float32, err error) {
	calls, err := group.Device(ctx, hipfabric.GPU{Device: device}) // every rank calls it
	if err != nil {
		return 0, err
	}
	stream, err := device.NewStream(hipgo.StreamNonBlocking)
	if err != nil {
		return 0, err
	}
	vector, err := device.Malloc(4 * count) // any device memory will do; Alloc's moves with the fewest copies
	if err != nil {
		return 0, errors.Join(err, stream.Close())
	}
	host, err := device.HostMalloc(4 * count)
	if err != nil {
		return 0, errors.Join(err, vector.Close(), stream.Close())
	}
	for i := range count {
		binary.LittleEndian.PutUint32(host.Bytes()[4*i:], math.Float32bits(float32(group.Rank()+1)))
	}
	// All of this is queued, in order, and returns at once: nothing here waits for another rank. Kernels may follow the call.
	at := fabric.DevPtr(vector.Ptr())
	err = errors.Join(
		stream.Copy(vector.Ptr(), host.Ptr(), 4*count, hipgo.CopyHostToDevice),
		calls.AllReduce(fabric.Stream(stream.Raw()), at, at, count, fabric.F32, fabric.Sum))
	// A result is one only once Wait has said nil: after a failure the stream runs on, and what it holds is undefined. A large
	// copy to or from the host comes after Wait too: queued behind the call it would take HIP's copy ring, which all streams
	// share, and hold up the copies that the call is made of.
	if err = errors.Join(err, calls.Wait(ctx, fabric.Stream(stream.Raw()))); err != nil {
		return 0, err // what the device still does is not known: its memory stays
	}
	if err = errors.Join(stream.Copy(host.Ptr(), vector.Ptr(), 4*count, hipgo.CopyDeviceToHost), stream.Synchronize(ctx)); err != nil {
		return 0, err
	}
	first = math.Float32frombits(binary.LittleEndian.Uint32(host.Bytes()))
	return first, errors.Join(host.Close(), vector.Close(), stream.Close())
}
