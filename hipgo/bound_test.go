package hipgo_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
)

func assertStuck(t *testing.T, err error, texts ...string) {
	t.Helper()
	var stuck *hipgo.UnsupportedError
	require.ErrorAs(t, err, &stuck)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	for _, text := range texts {
		assert.ErrorContains(t, err, text)
	}
}

// A library may run code of its own when it is loaded.
func TestALibraryThatDoesNotLoadToItsEndIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	_, err := hipgo.OpenWithin(20*time.Millisecond, "/opt/stuck/libamdhip64.so.7", func() (*driver.Table, error) {
		<-release
		return nil, errors.New("nobody hears this")
	})
	assertStuck(t, err, "/opt/stuck/libamdhip64.so.7", "loading it does not return within 20ms")
}

// The first call of a driver that is stuck blocks in the kernel.
func TestACountThatDoesNotReturnIsGivenUp(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	rt := w.Runtime()
	const blocked = 2 * time.Second
	before := runtime.NumGoroutine()
	rt.Within(20 * time.Millisecond)
	for what, ask := range map[string]func() error{
		"hipGetDeviceCount":           func() error { _, err := rt.Count(); return err },
		"asking what device 1 is":     func() error { _, err := rt.Device(1); return err },
		"asking what its devices are": func() error { _, err := rt.Devices(); return err },
	} {
		require.NoError(t, w.Fail(hiptest.Fault{Call: "hipGetDeviceCount", Delay: blocked}))
		began := time.Now()
		assertStuck(t, ask(), what+" does not return within 20ms", rt.Library())
		assert.Less(t, time.Since(began), blocked)
	}
	rt.Within(10 * blocked)
	n, err := rt.Count()
	require.NoError(t, err, "it has come to itself")
	assert.Equal(t, 2, n)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 10*blocked, time.Millisecond, "what came late has ended; one asks")
}
