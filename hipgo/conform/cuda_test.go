package conform

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/internal/driver"
	"github.com/hipfabric/hipfabric/hipgo/internal/fakecuda"
)

func TestTheCUDAPlatformOverAFakeDriverSaysWhatItLacks(t *testing.T) {
	if !driver.Built {
		t.Skip("this build has no cgo")
	}
	library, err := fakecuda.Build("../..", t.TempDir())
	require.NoError(t, err)
	rt, err := hipgo.OpenCUDA(hipgo.Config{Library: library})
	require.NoError(t, err)
	d, err := rt.Device(1)
	require.NoError(t, err)
	o := quick()
	o.Bound = time.Second
	r := Run(bounded(t, 5*time.Minute), d, o)
	assert.Equal(t, "CUDA 12.4.0", r.HIP)
	assert.Equal(t, "sm_90", r.Arch)
	for name, c := range results(r) {
		want := Pass
		switch name {
		case "wait64-gte-unsigned", "wait32-gte-unsigned", "queue-plain", "copy-caller-16385":
			want = Known
		case "wait64-mask", "wait32-mask", "wait64-nor-mask", "wait32-nor-mask", "queue-cumask", "noncoherent-host":
			want = Unsupported
		}
		assert.Equal(t, want, c.Result, "%s: %s %v", name, c.Seen, c.Parked)
	}
	if t.Failed() {
		t.Log("\n" + r.String())
	}
}
