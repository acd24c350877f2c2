package bootstrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// A lane that is dialled anew is no call's: that its other end has left is for the next call to find, if there is one.
func TestALaneDialledAnewFailsNobodyWhenItsOtherEndHasLeft(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	require.NoError(t, s[1].Close(ctx))
	anew := fabric.Lane{Channel: "host", Index: 1, Generation: 1}
	_, err := s[2].Dial(ctx, 1, anew)
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "rank 1 left the group")
	_, err = s[0].Accept(ctx, 1, anew)
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.ErrorContains(t, err, "rank 1 left the group")
	assert.NoError(t, s[0].Cause())
	assert.NoError(t, s[2].Cause())
	_, err = s[0].Accept(ctx, 1, fabric.Lane{Channel: "host"})
	assert.ErrorIs(t, err, fabric.ErrPeerFailed)
	assert.Error(t, s[0].Cause(), "a call's lane does")
}
