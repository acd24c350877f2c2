package rdma

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/verbs"
)

const (
	warmTrips  = 10
	smallTrips = 200
	largeTrips = 20
	maxTrips   = 10_000
	silence    = 3 * time.Second // without a message: longer than a queue pair's retries take
)

// ping sends so many messages, each once the last was answered.
func (e *end) ping(ctx context.Context, bytes, count int) (Trips, error) {
	t := Trips{Bytes: bytes}
	samples := make([]int64, 0, count)
	for n := uint32(1); n <= uint32(count); n++ {
		began := time.Now()
		err := e.send(ctx, n, bytes)
		if err == nil {
			var right bool
			if right, err = e.hear(ctx, n, bytes); !right && err == nil {
				t.Wrong++
			}
		}
		if err != nil {
			return t, fmt.Errorf("message %d of %d, %d bytes: %w", n, count, bytes, err)
		}
		if took := time.Since(began); n > warmTrips || count <= warmTrips {
			samples = append(samples, int64(took))
		}
	}
	slices.Sort(samples)
	us := func(q float64) float64 { return float64(measure.Percentile(samples, q)) / 1e3 }
	t.Samples, t.MinUs, t.P50Us, t.P99Us, t.MaxUs = len(samples), us(0), us(0.5), us(0.99), us(1)
	return t, nil
}

// pong answers so many messages and counts those that have wrong bytes.
func (e *end) pong(ctx context.Context, bytes, count int) (wrong int, err error) {
	for n := uint32(1); n <= uint32(count); n++ {
		right, err := e.hear(ctx, n, bytes)
		if err == nil {
			if !right {
				wrong++
			}
			err = e.send(ctx, n, bytes)
		}
		if err != nil {
			return wrong, fmt.Errorf("message %d of %d, %d bytes: %w", n, count, bytes, err)
		}
	}
	ctx, cancel := within(ctx, silence, "the last answer")
	defer cancel()
	return wrong, e.poll(ctx, func() bool { return !e.busy })
}

func (e *end) hear(ctx context.Context, n uint32, bytes int) (right bool, err error) {
	ctx, cancel := within(ctx, silence, "a message")
	defer cancel()
	return e.receive(ctx, n, bytes)
}

func parseGID(text string) (verbs.GID, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return verbs.GID{}, fmt.Errorf("%q is no GID", text)
	}
	return a.As16(), nil
}
