package verbs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
)

func TestNoRDMAIsUnsupportedByName(t *testing.T) {
	lib, err := verbs.Open(verbs.Config{})
	if err != nil {
		var load *verbs.LoadError
		require.ErrorAs(t, err, &load)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "libibverbs.so.1: ")
		t.Log(err)
		return
	}
	_, err = lib.Devices()
	if err == nil {
		t.Skip("there are devices")
	}
	for _, err := range []error{err, func() error { _, err := lib.Device("mlx5_0"); return err }()} {
		require.ErrorIs(t, err, verbs.ErrNoDevice)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		assert.ErrorContains(t, err, "the kernel ")
		assert.ErrorContains(t, err, lib.Path())
	}
	t.Log(err)
}
