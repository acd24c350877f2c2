//go:build cgo && linux

package hipgo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// On a GPU, hipgo.Open(hipgo.Config{}) gives the runtime; here the software device does.
func Example() {
	world, err := hiptest.New(hiptest.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	defer world.Close()
	device, err := world.Runtime().Choose(hipgo.Selector{})
	if err != nil {
		log.Fatal(err)
	}
	if err := queueAndRelease(device); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the stream wrote 1 and waits: true
	// released
}

func queueAndRelease(device *hipgo.Device) error {
	page, err := device.HostMalloc(4096)
	if err != nil {
		return err
	}
	defer page.Close()
	stream, err := device.NewStream(hipgo.StreamNonBlocking)
	if err != nil {
		return err
	}
	defer stream.Close() // waits until the stream has run dry
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	const ready, done = 0, 1
	words := page.Words()
	defer words.Store(done, ^uint64(0)) // so, whatever fails, nothing stays parked
	event, err := device.NewEvent(hipgo.EventDisableTiming)
	if err != nil {
		return err
	}
	defer event.Close()
	if err := stream.WriteValue64(words.Addr(ready), 1); err != nil {
		return err
	}
	if err := event.Record(stream); err != nil {
		return err
	}
	if err := stream.WaitValue64(words.Addr(done), 1, hipgo.ConditionGte, ^uint64(0)); err != nil {
		return err
	}
	if err := event.Synchronize(ctx); err != nil {
		return err
	}
	dry, err := stream.Query()
	if err != nil {
		return err
	}
	fmt.Printf("the stream wrote %d and waits: %v\n", words.Load(ready), !dry)
	words.Store(done, 1)
	if err := stream.Synchronize(ctx); err != nil {
		return err
	}
	fmt.Println("released")
	return nil
}
