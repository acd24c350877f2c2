//go:build cgo && linux

package hiptest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestACallBlocksAndThenWorksOrFails(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	for _, code := range []int{0, 2} {
		require.NoError(t, w.Fail(hiptest.Fault{Call: "hipMalloc", Code: code, Delay: 20 * time.Millisecond}))
		began := time.Now()
		b, err := w.Device(0).Malloc(8)
		assert.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
		if code != 0 {
			require.ErrorContains(t, err, "hipErrorOutOfMemory")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
}
