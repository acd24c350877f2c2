package hipgo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// A driver that blocks inside a call cannot be told to stop; who asks is told, and goes on.
func TestASelfTestEndsThoughACallOfTheDriverDoesNot(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	const blocked = 6 * time.Second
	require.NoError(t, w.Fail(hiptest.Fault{Call: "hipStreamWaitValue64", Delay: blocked}))
	err := w.Device(0).SelfTest(within(t, 20*time.Millisecond))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	var refusal *hipgo.UnsupportedError
	require.ErrorAs(t, err, &refusal)
	for _, fact := range []string{"a call of its driver does not return", w.Device(0).String()} {
		assert.ErrorContains(t, err, fact)
	}
	require.Eventually(t, func() bool { return w.Leaks() == "" }, 10*blocked, time.Millisecond)
}
