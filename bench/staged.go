//go:build linux && cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hipfabric/hipfabric"
	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"golang.org/x/sys/unix"
)

const (
	queueBar     = 1.5 // a queued call against the bare write and wait
	overheadBar  = 4.0 // what a staged call takes beyond a host call, against the device's bare round trip
	zeroCopyBar  = 1.5
	modelledBar  = 1.3 // against the slower of wire and copies
	inPlaceBar   = 1.1 // against the host path
	deviceSmall  = 16
	deviceLarge  = 4 << 20
	smallCalls   = 2000
	largeCalls   = 60
	queuedAtOnce = 128
	modelledRate = 250e6 // bytes a second, of the copies and of the wire
	modelledPart = 128 << 10
)

func devices() []comparison {
	one := func(title string, k key, ratio float64, measure func(context.Context, string) (float64, float64, error)) comparison {
		return comparison{name: "staged", title: title, world: 2, both: &onDevice{key: k, do: measure}, bars: map[key]float64{k: ratio}}
	}
	return []comparison{
		one("a bare write and wait", key{"queueing, words gate", deviceSmall}, queueBar, queueing),
		one("the device's round trip", key{"staged beyond tcp", deviceSmall}, overheadBar, beyond(false)),
		one("the device's round trip", key{"staged beyond tcp, zero copy", deviceSmall}, zeroCopyBar, beyond(true)),
		one("the slower of wire and copies", key{"staged exchange, modelled copies", deviceLarge}, modelledBar, modelled),
		one("tcp", key{"staged exchange, zero copy", deviceLarge}, inPlaceBar, unmoved),
	}
}

// onDevice measures a call on device memory and what it is held against, both ranks in this process on the software device.
type onDevice struct {
	key key
	do  func(ctx context.Context, dir string) (ours, theirs float64, err error)
	dir string
}

func (o *onDevice) prepare(_ context.Context, dir string) error {
	o.dir = dir
	return nil
}

func (o *onDevice) measureBoth(ctx context.Context) (ours, theirs results, err error) {
	// What two processes would have: each rank an engine's goroutine and a proxy's that spin.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0)))
	a, b, err := o.do(ctx, o.dir)
	return results{o.key: a}, results{o.key: b}, err
}

// station is one rank with a device, a stream and device memory.
type station struct {
	group   *hipfabric.Group
	device  *hipgo.Device
	calls   *fabric.StreamCollective
	stream  hipgo.Stream
	in, out fabric.DeviceMemory
	host    []byte
}

type pair struct {
	world *hiptest.World
	at    [2]station
}

func newPair(ctx context.Context, dir string, s hiptest.Settings, partBytes int) (p *pair, err error) {
	s.Devices = 2
	p = &pair{}
	if p.world, err = hiptest.New(s); err != nil {
		return nil, err
	}
	meeting, err := os.MkdirTemp(dir, "staged")
	if err != nil {
		return nil, err
	}
	err = errors.Join(each(2, func(r int) (err error) {
		a := &p.at[r]
		a.device, a.host = p.world.Device(r), make([]byte, 2*deviceLarge)
		a.group, err = hipfabric.Open(ctx, hipfabric.Config{Rank: r, World: 2, OpenTimeout: oneRun, PartBytes: partBytes, Logger: slog.New(slog.DiscardHandler),
			Master: "file:" + filepath.Join(meeting, "master")})
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
		if a.calls, err = a.group.Device(ctx, hipfabric.GPU{Device: a.device, Gate: stage.Words}); err != nil {
			return err
		}
		if a.stream, err = a.device.NewStream(hipgo.StreamNonBlocking); err != nil {
			return err
		}
		if a.in, err = a.calls.Alloc(deviceLarge); err != nil {
			return err
		}
		a.out, err = a.calls.Alloc(deviceLarge)
		return err
	})...)
	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *pair) close(ctx context.Context) error {
	err := errors.Join(each(2, func(r int) (err error) {
		a := &p.at[r]
		if a.calls != nil {
			err = a.group.Control().Barrier(ctx)
		}
		for _, m := range []fabric.DeviceMemory{a.in, a.out} {
			if m != nil {
				err = errors.Join(err, m.Close())
			}
		}
		if a.group != nil {
			err = errors.Join(err, a.group.Close(ctx))
		}
		if a.stream != (hipgo.Stream{}) {
			err = errors.Join(err, a.stream.Close())
		}
		return err
	})...)
	return errors.Join(err, p.world.Close())
}

// median of n runs of step on both ranks at once, as rank 0 saw them, in microseconds. together: both begin each one at the
// same time, which the steps of a call see to themselves.
func (p *pair) median(n int, together bool, step func(a *station, peer, i int) error) (float64, error) {
	took := make([]float64, n)
	var begun [2]atomic.Int64
	err := errors.Join(each(2, func(r int) error {
		for i := range n + n/10 {
			begun[r].Store(int64(i))
			for together && begun[1-r].Load() < int64(i) {
				runtime.Gosched()
			}
			began := time.Now()
			if err := step(&p.at[r], 1-r, i); err != nil {
				begun[r].Store(math.MaxInt64)
				return fmt.Errorf("rank %d: %w", r, err)
			}
			if r == 0 {
				took[i%n] = float64(time.Since(began).Nanoseconds()) / 1e3
			}
		}
		return nil
	})...)
	return median(took), err
}

func (p *pair) tcp(bytes, n int) (float64, error) {
	return p.median(n, false, func(a *station, peer, _ int) error {
		return a.group.Host().Exchange(a.host[:bytes], a.host[deviceLarge:][:bytes], peer)
	})
}

func (p *pair) staged(ctx context.Context, bytes, n int) (float64, error) {
	return p.median(n, false, func(a *station, peer, _ int) error {
		s := fabric.Stream(a.stream.Raw())
		if err := a.calls.Exchange(s, a.out.Device(), a.in.Device(), bytes, peer); err != nil {
			return err
		}
		return a.calls.Wait(ctx, s)
	})
}

// roundTrip is a write that the host sees, a store that it answers with, and the stream gone on. Both ranks begin each one
// at the same time, as they do a call: left alone they would take turns at the cores.
func (p *pair) roundTrip(n int) (us float64, err error) {
	var words [2]*hipgo.HostBuffer
	var events [2]hipgo.Event
	for r := range words {
		if words[r], err = p.at[r].device.HostMalloc(128); err != nil {
			return 0, err
		}
		if events[r], err = p.at[r].device.NewEvent(hipgo.EventDisableTiming); err != nil {
			return 0, err
		}
	}
	us, err = p.median(n, true, func(a *station, peer, i int) error {
		w, event, v := words[1-peer].Words(), events[1-peer], uint64(i+1)
		if err := a.stream.WriteWait(w.Addr(0), v, w.Addr(8), v); err != nil {
			return err
		}
		if err := event.Record(a.stream); err != nil {
			return err
		}
		for rounds := 1; w.Load(0) != v; rounds++ {
			if rounds%64 == 0 {
				runtime.Gosched()
			}
		}
		w.Store(8, v)
		for {
			if done, err := event.Query(); done || err != nil {
				return err
			}
		}
	})
	for r := range words {
		err = errors.Join(err, words[r].Close(), events[r].Close())
	}
	return us, err
}

func beyond(zeroCopy bool) func(context.Context, string) (float64, float64, error) {
	return func(ctx context.Context, dir string) (ours, theirs float64, err error) {
		p, err := newPair(ctx, dir, hiptest.Settings{Integrated: zeroCopy}, 0)
		if err != nil {
			return 0, 0, err
		}
		staged, err1 := p.staged(ctx, deviceSmall, smallCalls)
		tcp, err2 := p.tcp(deviceSmall, smallCalls)
		trip, err3 := p.roundTrip(smallCalls)
		return max(staged-tcp, 0.001), trip, errors.Join(err1, err2, err3, p.close(ctx))
	}
}

// modelled has a wire and copies of one rate, which a processor that does the work of both has time for.
func modelled(ctx context.Context, dir string) (ours, theirs float64, err error) {
	p, err := newPair(ctx, dir, hiptest.Settings{CopyBandwidth: modelledRate}, modelledPart)
	if err != nil {
		return 0, 0, err
	}
	if err := paceSockets(modelledRate); err != nil {
		return 0, 0, errors.Join(err, p.close(ctx))
	}
	staged, err1 := p.staged(ctx, deviceLarge, largeCalls)
	wire, err2 := p.tcp(deviceLarge, largeCalls)
	copies := deviceLarge / (modelledRate / 1e6)
	return staged, max(wire, copies), errors.Join(err1, err2, p.close(ctx))
}

// paceSockets has every TCP connection of this process send no faster than this.
func paceSockets(bytesPerSecond int) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		if protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
			continue // no socket, or one of another kind
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, bytesPerSecond); err != nil {
			return fmt.Errorf("pacing socket %d: %w", fd, err)
		}
	}
	return nil
}

func unmoved(ctx context.Context, dir string) (ours, theirs float64, err error) {
	p, err := newPair(ctx, dir, hiptest.Settings{Integrated: true}, 0)
	if err != nil {
		return 0, 0, err
	}
	staged, err1 := p.staged(ctx, deviceLarge, largeCalls)
	tcp, err2 := p.tcp(deviceLarge, largeCalls)
	return staged, tcp, errors.Join(err1, err2, p.close(ctx))
}

// queueing is the time of a call alone, and of the two operations alone, on streams that are held.
func queueing(ctx context.Context, dir string) (ours, theirs float64, err error) {
	p, err := newPair(ctx, dir, hiptest.Settings{}, 0)
	if err != nil {
		return 0, 0, err
	}
	words, err := p.at[0].device.HostMalloc(128)
	if err != nil {
		return 0, 0, errors.Join(err, p.close(ctx))
	}
	w, times := words.Words(), [2][]float64{}
	// held times op, once a call, while rank 0's stream stands still.
	held := func(into *[]float64, op func() error) error {
		q := p.world.Queue(p.at[0].stream)
		if err := q.Hold(); err != nil {
			return err
		}
		for range queuedAtOnce {
			began := time.Now()
			if err := op(); err != nil {
				return errors.Join(err, q.Release())
			}
			*into = append(*into, float64(time.Since(began).Nanoseconds())/1e3)
		}
		return q.Release()
	}
	for range 20 {
		a, b := &p.at[0], &p.at[1]
		err = errors.Join(err,
			held(&times[0], func() error {
				return a.calls.Exchange(fabric.Stream(a.stream.Raw()), a.out.Device(), a.in.Device(), deviceSmall, 1)
			}))
		for range queuedAtOnce {
			err = errors.Join(err, b.calls.Exchange(fabric.Stream(b.stream.Raw()), b.out.Device(), b.in.Device(), deviceSmall, 0))
		}
		err = errors.Join(err, a.calls.Wait(ctx, fabric.Stream(a.stream.Raw())),
			held(&times[1], func() error { return a.stream.WriteWait(w.Addr(0), 1, w.Addr(0), 1) }),
			a.calls.Wait(ctx, fabric.Stream(a.stream.Raw())))
	}
	err = errors.Join(err, words.Close(), p.close(ctx))
	return median(slices.Clone(times[0])), median(slices.Clone(times[1])), err
}
