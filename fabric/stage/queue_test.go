package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Neither queueing nor carrying out a call allocates: AllocsPerRun counts the proxy's too.
func TestACallAllocatesNothing(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 1})
			ranks := openHIP(t, w, 1, stage.Config{Gate: gate, PartBytes: 4096}, nil)
			defer done(t, ranks)
			r := ranks[0]
			in, err := r.alloc(10000)
			require.NoError(t, err)
			out, err := r.alloc(10000)
			require.NoError(t, err)
			call := func() {
				before := r.path.Stats().Calls
				if err := r.AllGather(r.stream(), out, in, 10000); err != nil {
					t.Error(err)
				}
				for r.path.Stats().Calls == before {
					runtime.Gosched()
				}
			}
			for range 300 {
				call()
			}
			assert.Less(t, testing.AllocsPerRun(200, call), 1.0)
		})
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for want, change := range map[string]func(*stage.Config){
		"PartBytes is 8; a multiple of 16 from 16 to 67108864 is needed":        func(c *stage.Config) { c.PartBytes = 8 },
		"PartBytes is 40; a multiple of 16":                                     func(c *stage.Config) { c.PartBytes = 40 },
		"PartBytes is 134217728; a multiple of 16":                              func(c *stage.Config) { c.PartBytes = 128 << 20 },
		"PartBytes is -16; a multiple of 16":                                    func(c *stage.Config) { c.PartBytes = -16 },
		"Gate is gate(7)":                                                       func(c *stage.Config) { c.Gate = 7 },
		"the kernels gate needs a driver that launches kernels; gfx0000 double": func(c *stage.Config) { c.Gate = stage.Kernels },
		"stage needs a Transport and a Driver":                                  func(c *stage.Config) { c.Driver = nil },
	} {
		d := newDouble(t)
		c := stage.Config{Transport: fabrictest.NewNetwork(1).Transport(0), Driver: d}
		change(&c)
		_, err := stage.Open(c)
		require.ErrorContains(t, err, want)
		d.leaks(t)
	}
}

func TestAFailedOpenFreesAllAndNamesTheDevice(t *testing.T) {
	for method, times := range map[string]int{"AllocHost": 2, "OpenStream": 3} {
		for nth := 1; nth <= times; nth++ {
			d := newDouble(t)
			d.fault = func(m string, n int) error {
				if m == method && n == nth {
					return errors.New("hipErrorOutOfMemory")
				}
				return nil
			}
			_, err := stage.Open(stage.Config{Transport: fabrictest.NewNetwork(1).Transport(0), Driver: d})
			require.ErrorIs(t, err, fabric.ErrDevice)
			require.ErrorContains(t, err, "gfx0000 double")
			require.ErrorContains(t, err, "hipErrorOutOfMemory")
			d.leaks(t)
		}
	}
}

func TestBuffersAndStreamsAreRefusedByName(t *testing.T) {
	ranks := openRanks(t, 2, nil)
	r := ranks[0]
	p, _ := r.memory(make([]byte, 100))
	q, _ := r.memory(make([]byte, 200))
	for want, call := range map[string]func() error{
		"in, 101 bytes at ":  func() error { return r.AllReduce(r.s, q, p, 101, fabric.U8, fabric.Sum) },
		"out, 101 bytes at ": func() error { return r.AllReduce(r.s, p, q, 101, fabric.U8, fabric.Sum) },
		"in, 10 bytes at 0x": func() error { return r.Send(r.s, 0x12340, 10, 1) },
		"lengths, 8 bytes at": func() error {
			return r.AllGatherVDevice(r.s, p, p+40, 10, 0x5550)
		},
		"stream 0x999 takes no barrier of gfx0000": func() error { return r.Barrier(0x999) },
	} {
		err := call()
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, r.Wait(t.Context(), 0x999), fabric.ErrInvalid)
	require.NoError(t, r.Check())
	for _, r := range ranks {
		require.NoError(t, r.Barrier(r.s))
	}
	for _, r := range ranks {
		r.wait(t)
	}
}

// A driver that holds the proxy cannot hold the streams.
func TestAStuckDriverParksNoStream(t *testing.T) {
	for _, method := range []string{"Copy", "Record", "Query"} {
		t.Run(method, func(t *testing.T) {
			stuck := make(chan struct{})
			ranks := openRanks(t, 2, func(r int, c *stage.Config, d *double) {
				c.Timeout = 500 * time.Millisecond
				if r == 1 {
					d.before = func(m string, n int) {
						if m == method && n == 2 {
							<-stuck
						}
					}
				}
			})
			began := time.Now()
			for i, r := range ranks {
				in, _ := r.memory(pattern(i, 64))
				out, _ := r.memory(make([]byte, 128))
				for range 2 {
					_ = r.AllGather(r.s, out, in, 64)
				}
			}
			for i, r := range ranks {
				assert.True(t, r.passes(5*time.Second), "rank %d's stream is parked", i)
			}
			assert.Less(t, time.Since(began), 5*time.Second)
			if method != "Query" { // which the wait itself needs
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				err := ranks[1].Wait(ctx, ranks[1].s)
				cancel()
				require.Error(t, err)
				assert.Contains(t, fmt.Sprintf("%v %v", err, err.(*fabric.OpError).Local), "in "+method)
			}
			close(stuck)
		})
	}
}

func TestTwoGroupsShareAProxy(t *testing.T) {
	d := newDouble(t)
	proxy, err := stage.NewProxy(d)
	require.NoError(t, err)
	var groups []*rank
	for range 3 {
		net := fabrictest.NewNetwork(1)
		path, err := stage.Open(stage.Config{Transport: net.Transport(0), Driver: d, Proxy: proxy})
		require.NoError(t, err)
		groups = append(groups, &rank{StreamCollective: fabric.NewStream(path, fabric.Options{}), path: path, d: d, s: fabric.Stream(d.stream())})
	}
	require.NoError(t, proxy.Close(), "which ends with its last group")
	_, err = stage.Open(stage.Config{Transport: fabrictest.NewNetwork(1).Transport(0), Driver: d, Proxy: proxy})
	require.ErrorIs(t, err, fabric.ErrInvalid, "and has no further ones")
	d.mu.Lock()
	assert.Len(t, d.streams, 3+2, "hardware queues are few: the three engines have one each, the proxy two")
	d.mu.Unlock()
	hold := d.hold(uintptr(groups[0].s))
	for i, g := range groups {
		in, _ := g.memory(pattern(i, 100))
		out, mem := g.memory(make([]byte, 100))
		require.NoError(t, g.AllGather(g.s, out, in, 100))
		if i > 0 {
			g.wait(t)
			assert.Equal(t, pattern(i, 100), mem)
		}
	}
	hold()
	for _, g := range groups {
		g.wait(t)
		require.NoError(t, g.Close())
	}
	d.leaks(t)
	require.NoError(t, proxy.Close())
}
