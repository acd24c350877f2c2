package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
)

const (
	tripBytes  = 16
	maxTrips   = 20_000
	warmTrips  = 100
	graceTime  = 3 * time.Second // for what is on its way when the time is up
	acceptTime = 10 * time.Second
)

// bound ends every wait of the connections at a time, or with ctx; stop ends the binding.
func bound(ctx context.Context, until time.Time, conns ...*net.TCPConn) (stop func() bool) {
	for _, c := range conns {
		_ = c.SetDeadline(until)
	}
	return context.AfterFunc(ctx, func() {
		for _, c := range conns {
			_ = c.SetDeadline(time.Unix(1, 0))
		}
	})
}

// trips sends small messages one after the other, each once the last was answered, for a time.
func trips(ctx context.Context, c *net.TCPConn, wait string, d time.Duration) (RoundTrips, error) {
	defer func() { _ = c.Close() }()
	defer bound(ctx, time.Now().Add(d+graceTime), c)()
	read, err := reader(c, wait)
	if err != nil {
		return RoundTrips{}, err
	}
	message := make([]byte, tripBytes)
	samples := make([]int64, 0, maxTrips)
	began := time.Now()
	for n := 0; len(samples) < maxTrips && (time.Since(began) < d || len(samples) == 0); n++ {
		sent := time.Now()
		if _, err := c.Write(message); err != nil {
			return RoundTrips{}, err
		}
		if err := full(read, message); err != nil {
			return RoundTrips{}, err
		}
		if took := time.Since(sent); n >= warmTrips || took > d/10 {
			samples = append(samples, int64(took))
		}
	}
	slices.Sort(samples)
	us := func(q float64) float64 { return float64(measure.Percentile(samples, q)) / 1e3 }
	return RoundTrips{Wait: wait, Bytes: tripBytes, Samples: len(samples), MinUs: us(0), P50Us: us(0.5), P99Us: us(0.99), MaxUs: us(1)}, nil
}

// echo answers every message until the other end closes.
func echo(ctx context.Context, c *net.TCPConn, wait string, d time.Duration) error {
	defer func() { _ = c.Close() }()
	defer bound(ctx, time.Now().Add(d+2*graceTime), c)()
	read, err := reader(c, wait)
	if err != nil {
		return err
	}
	message := make([]byte, tripBytes)
	for {
		if err := full(read, message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := c.Write(message); err != nil {
			return err
		}
	}
}

func full(read func([]byte) (int, error), b []byte) error {
	for len(b) > 0 {
		n, err := read(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func reader(c *net.TCPConn, wait string) (func([]byte) (int, error), error) {
	if wait == Spinning {
		return spinner(c)
	}
	return c.Read, nil
}
