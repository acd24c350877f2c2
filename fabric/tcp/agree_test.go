//go:build linux || darwin

package tcp

import (
	"context"
	"errors"
	"log/slog"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// elsewhere makes a mesh's ranks look as if they were on several hosts.
type elsewhere struct {
	*localMesh
	rails int
}

func (e elsewhere) Rails(int) []fabric.Rail {
	rails := make([]fabric.Rail, e.rails)
	for i := range rails {
		rails[i] = fabric.Rail{Index: i, Interface: loopbackName}
	}
	return rails
}

// openEach opens a rank with each configuration, over meshes that wrap makes, and closes them when the test ends.
func openEach(t *testing.T, wrap func(*localMesh) Mesh, configs ...Config) []*Transport {
	t.Helper()
	ts, errs := make([]*Transport, len(configs)), make([]error, len(configs))
	var wg sync.WaitGroup
	for r, m := range localMeshes(t, len(configs)) {
		wg.Go(func() { ts[r], errs[r] = Open(context.Background(), wrap(m), configs[r]) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, tr := range ts {
		t.Cleanup(func() { tr.Close() })
	}
	return ts
}

func lanesTo(t *Transport, peer int) int {
	n := 0
	for _, p := range t.Stats().Peers {
		if p.Peer == peer {
			for _, r := range p.Rails {
				n += r.Lanes
			}
		}
	}
	return n
}

func TestAPairHasTheSmallerOfItsEndsNumbers(t *testing.T) {
	within := func(m *localMesh) Mesh { return m }
	beyond := func(rails int) func(m *localMesh) Mesh {
		return func(m *localMesh) Mesh { return elsewhere{m, rails} }
	}
	for _, c := range []struct {
		name       string
		wrap       func(*localMesh) Mesh
		zero, one  int
		want, rest int // lanes of the pair, and those of each end with rank 2, which asks for 3
	}{
		{"one within a host", within, 0, 0, 1, 1},
		{"four beyond", beyond(1), 0, 0, 4, 3},
		{"the smaller", beyond(1), 6, 2, 2, -1},
		{"the smaller, the other way", beyond(1), 2, 6, 2, -1},
		{"as asked within a host", within, 5, 2, 2, -1},
		{"one a rail", beyond(3), 1, 1, 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := openEach(t, c.wrap, Config{Lanes: c.zero}, Config{Lanes: c.one}, Config{Lanes: 3})
			assert.Equal(t, c.want, lanesTo(ts[0], 1))
			assert.Equal(t, c.want, lanesTo(ts[1], 0))
			if c.rest >= 0 {
				assert.Equal(t, c.rest, lanesTo(ts[2], 0))
				assert.Equal(t, c.rest, lanesTo(ts[0], 2))
			}
		})
	}
}

func TestLanesAreSpreadOverTheRails(t *testing.T) {
	ts := openEach(t, func(m *localMesh) Mesh { return elsewhere{m, 3} }, Config{Lanes: 8}, Config{Lanes: 8})
	var got []int
	for _, r := range ts[0].Stats().Peers[0].Rails {
		got = append(got, r.Lanes)
	}
	assert.Equal(t, []int{3, 3, 2}, got)
}

func TestLanesAreMeasuredAndRemembered(t *testing.T) {
	log := &record{said: make(chan struct{}, 1)}
	caches := []*laneMemory{{}, {}, {}}
	open := func() []*Transport {
		configs := make([]Config, 3)
		for r := range configs {
			configs[r] = Config{Lanes: LanesAuto, LaneCache: caches[r], Logger: slog.New(log), Yield: true}
		}
		return openEach(t, func(m *localMesh) Mesh { return m }, configs...)
	}
	ts := open()
	lanes := caches[0].lanes
	assert.Contains(t, []int{1, 2, 4, 8}, lanes)
	for r, tr := range ts {
		assert.Equal(t, lanes, caches[r].lanes, "the same on every rank")
		assert.Equal(t, lanes, lanesTo(tr, (r+1)%3), "and no other is open")
	}
	log.await(t, "lanes were measured")
	var wg sync.WaitGroup
	for _, tr := range ts {
		c := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
		wg.Go(func() { assert.NoError(t, c.AllGather(make([]byte, 3<<20), make([]byte, 1<<20))) })
	}
	wg.Wait()

	for _, c := range caches {
		c.lanes = 2
	}
	assert.Equal(t, 2, lanesTo(open()[0], 1), "what all remember is not measured")
	log.await(t, "times=remembered")
	caches[1].lanes = 0
	open()
	assert.Equal(t, 3, caches[1].loads)
	assert.NotZero(t, caches[1].lanes, "what one has forgotten is measured by all")
}

type laneMemory struct{ lanes, loads int }

func (m *laneMemory) Load(string) (int, bool)     { m.loads++; return m.lanes, m.lanes > 0 }
func (m *laneMemory) Store(_ string, n int) error { m.lanes = n; return nil }

func TestTheFewestLanesThatAreAboutAsFastAreTaken(t *testing.T) {
	of := func(ms ...int) []laneTime {
		var times []laneTime
		for i, n := range ms {
			times = append(times, laneTime{1 << i, time.Duration(n) * time.Millisecond})
		}
		return times
	}
	assert.Equal(t, 1, choose(of(100, 100, 100, 100)))
	assert.Equal(t, 1, choose(of(100, 97, 96, 98)), "not for so little")
	assert.Equal(t, 2, choose(of(100, 50, 49, 60)))
	assert.Equal(t, 8, choose(of(100, 80, 60, 40)))
}

// A lane is a socket: neither a thread nor a goroutine.
func TestThreadsDoNotGrowWithLanes(t *testing.T) {
	count := func(lanes int) (threads int) {
		ts := openEach(t, func(m *localMesh) Mesh { return m }, Config{Lanes: lanes, SpinFor: -1}, Config{Lanes: lanes, SpinFor: -1},
			Config{Lanes: lanes, SpinFor: -1}, Config{Lanes: lanes, SpinFor: -1})
		var wg sync.WaitGroup
		for _, tr := range ts {
			c := fabric.New(tr, fabric.Options{Timeout: 10 * time.Second})
			wg.Go(func() {
				for range 50 {
					if err := c.AllGather(make([]byte, 4<<18), make([]byte, 1<<18)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return pprof.Lookup("threadcreate").Count()
	}
	few := count(1)
	assert.LessOrEqual(t, count(16), few+4)
}
