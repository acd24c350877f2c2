package hipgo_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
)

func TestNoRuntimeOrNoGPUIsUnsupportedByName(t *testing.T) {
	rt, err := hipgo.Open(hipgo.Config{})
	if err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		t.Skip(err)
	}
	if _, err = rt.Count(); err == nil {
		t.Skip("there is a GPU: " + rt.String())
	}
	require.ErrorIs(t, err, hipgo.ErrNoGPU)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, rt.Library())
	t.Log(err)
}
