package hipgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

const bound = 10 * time.Second

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// bench is a device with a stream and a page of words.
type bench struct {
	*hiptest.World
	d     *hipgo.Device
	s     hipgo.Stream
	page  *hipgo.HostBuffer
	words hipgo.Words
}

func start(t *testing.T, settings hiptest.Settings) bench {
	t.Helper()
	w := hiptest.Start(t, settings)
	d := w.Device(0)
	s, err := d.NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	page, err := d.HostMalloc(4096)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, page.Close())
	})
	return bench{w, d, s, page, page.Words()}
}

func (b bench) drained(t *testing.T) {
	t.Helper()
	require.NoError(t, b.s.Synchronize(within(t, bound)), b.Parked())
}
