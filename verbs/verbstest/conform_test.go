package verbstest_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func fabric(t testing.TB, seed uint64, of verbstest.Topology) *verbstest.Fabric {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("package verbs has no memory for devices there")
	}
	f, err := verbstest.New(seed, of)
	require.NoError(t, err)
	t.Cleanup(func() {
		f.Close()
		for i := range f.Hosts() {
			assert.Zero(t, f.Host(i).Left(), "host %d", i)
		}
	})
	return f
}

func open(t testing.TB, f *verbstest.Fabric, host, hca int) *verbs.Context {
	t.Helper()
	d, err := f.Host(host).Library().Device(f.Host(host).HCA(hca).Name())
	require.NoError(t, err)
	c, err := d.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func end(t testing.TB, c *verbs.Context, q verbs.QPConfig) *conform.End {
	t.Helper()
	e, err := conform.NewEnd(within(t), c, q, conform.All)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

// impatient has failures come soon.
func impatient() verbs.Connection {
	return verbs.Connection{Timeout: time.Millisecond, Retries: 1}
}

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*verbstest.Fabric){
		"in order":     func(*verbstest.Fabric) {},
		"out of order": func(f *verbstest.Fabric) { f.OutOfOrder(true) },
		"delayed":      func(f *verbstest.Fabric) { f.Delay(0, time.Millisecond) },
	} {
		for _, check := range conform.List() {
			t.Run(fmt.Sprintf("%s/%s", name, check.Name), func(t *testing.T) {
				f := fabric(t, 1, verbstest.Switch(2, 1))
				change(f)
				require.NoError(t, check.Run(within(t), open(t, f, 0, 0), open(t, f, 1, 0)))
			})
		}
	}
}
