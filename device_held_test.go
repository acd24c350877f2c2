//go:build linux && cgo

package hipfabric

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// soon gives what f returns, and fails the test where f does not.
func soon[T any](t *testing.T, what string, f func() T) T {
	t.Helper()
	returned := make(chan T, 1)
	go func() { returned <- f() }()
	select {
	case v := <-returned:
		return v
	case <-time.After(15 * time.Second):
		require.FailNow(t, what+" does not return")
		var none T
		return none
	}
}

func TestADriverThatDoesNotReturnHoldsUpNobody(t *testing.T) {
	world := hiptest.Start(t, hiptest.Settings{Devices: 2})
	groups := opened(t, 2, func(c *Config) { c.OpenTimeout = 2 * time.Minute })
	entered, release := make(chan struct{}, 2), make(chan struct{})
	held := groups[1].family
	t.Cleanup(func() { // what came late is given back: both shares of the proxy, then its streams
		close(release)
		assert.Eventually(t, func() bool {
			held.mu.Lock()
			defer held.mu.Unlock()
			return len(held.proxies) == 0 && world.Leaks() == ""
		}, 20*time.Second, time.Millisecond)
	})
	held.newProxy = func(d stage.Driver) (*stage.Proxy, error) {
		entered <- struct{}{}
		<-release
		return stage.NewProxy(d)
	}
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := []context.Context{t.Context(), short}
	device := func(r int) error {
		_, err := groups[r].Device(ctx[r], GPU{Device: world.Device(r), Gate: stage.Kernels})
		return err
	}
	ended := make(chan error, 2)
	begin := func() {
		for r := range 2 {
			go func() { ended <- device(r) }()
		}
	}
	begin()
	<-entered
	soon(t, "the heartbeat's progress", func() fabric.Progress { return held.progress() })
	cancel()
	for range 2 {
		err := soon(t, "Device", func() error { return <-ended })
		assertDeviceError(t, err, fabric.ErrDevice, "rank 1 could not open its device", "a call of the driver does not return", "gfx1151")
	}
	for r, err := range each(2, func(r int) error { return groups[r].Host().Barrier() }) {
		require.NoError(t, err, "rank %d goes on", r)
	}
	ctx[1] = t.Context()
	begin() // waits for the proxy of before
	require.Eventually(t, func() bool {
		held.mu.Lock()
		defer held.mu.Unlock()
		l := held.proxies[world.Device(1).String()]
		return l != nil && l.groups == 2
	}, 20*time.Second, time.Millisecond)
	for _, err := range soon(t, "Close", func() []error { return closeAll(groups) }) {
		assert.NoError(t, err)
	}
	for range 2 {
		require.Error(t, soon(t, "Device", func() error { return <-ended }))
	}
}

// The group's Close has given up by then, and nobody is left to close the proxy but the copy's end.
func TestAProxyEndsWithACopyThatOutlivesItsLastGroup(t *testing.T) {
	world := hiptest.Start(t, hiptest.Settings{})
	r := staged(t, opened(t, 1, nil), gpus([]*hipgo.Device{world.Device(0)}, stage.Words))[0]
	memory, err := world.Device(0).Malloc(4096)
	require.NoError(t, err)
	require.NoError(t, world.Fail(hiptest.Fault{Copy: hiptest.CopyLate})) // until Land
	require.NoError(t, r.calls.AllGather(r.raw(), fabric.DevPtr(memory.Ptr()+1024), fabric.DevPtr(memory.Ptr()), 16))
	require.Eventually(t, func() bool { return strings.Contains(world.Parked(), "is late") }, 20*time.Second, time.Millisecond)
	err = r.Close(t.Context())
	require.ErrorIs(t, err, fabric.ErrDevice)
	assert.ErrorContains(t, err, "a copy of its may still land")
	assert.NotErrorIs(t, err, fabric.ErrInvalid, "nobody is told to close a group that is closed")
	world.Land()
	require.Eventually(t, func() bool { return world.Parked() == "" }, 20*time.Second, time.Millisecond)
	require.NoError(t, errors.Join(r.stream.Close(), memory.Close()))
	assert.Eventually(t, func() bool { return world.Leaks() == "" }, 20*time.Second, time.Millisecond)
}
