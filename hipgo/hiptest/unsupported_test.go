//go:build !cgo || !linux

package hiptest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestWithoutCgoOnLinuxThereIsNoDevice(t *testing.T) {
	_, err := hiptest.New(hiptest.Settings{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	t.Run("skips", func(t *testing.T) {
		hiptest.Start(t, hiptest.Settings{})
		t.Fatal("Start returned")
	})
}
