package gpu

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/hipgo"
)

func TestADeviceIsNamedByANumberOrAWord(t *testing.T) {
	for text, want := range map[string]Choice{"auto": {}, "software": {kind: Software}, "hip:0": {kind: "hip"}, "hip:12": {kind: "hip", ordinal: 12}, "cuda:1": {kind: "cuda", ordinal: 1}} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "hip", "hip:", "hip:-1", "hip:x", "cuda", "cuda:-1", "0", "Auto"} {
		_, err := Parse(text)
		require.ErrorIs(t, err, fabric.ErrInvalid, text)
		assert.ErrorContains(t, err, text)
	}
}

func TestAFailedCallIsADeviceErrorAndWhatIsMissingUnsupported(t *testing.T) {
	assert.NoError(t, Kind(nil))
	assert.ErrorIs(t, Kind(&hipgo.Error{Call: "hipMalloc", Code: 2}), fabric.ErrDevice)
	for _, keeps := range []error{&hipgo.Error{Call: "hipInit", Code: 100}, hipgo.ErrNoGPU, fabric.ErrDevice, fabric.Invalidf("x"), context.Canceled} {
		assert.Equal(t, keeps, Kind(keeps))
	}
	bad := Report{GPUs: []One{{}, {err: &hipgo.Error{Call: "hipMemGetInfo", Code: 719}}}}
	require.ErrorIs(t, bad.Err(), fabric.ErrDevice)
	assert.ErrorIs(t, Report{err: hipgo.ErrNoGPU}.Err(), errors.ErrUnsupported)
	assert.NoError(t, Report{GPUs: []One{{}}}.Err())
}
