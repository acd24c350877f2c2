package driver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABuildWithoutCSaysSo(t *testing.T) {
	if Built {
		t.Skip("this build has it")
	}
	_, err := Load("")
	require.ErrorIs(t, err, ErrBuild)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, "libibverbs.so.1: RDMA needs a build for Linux with cgo")
}
