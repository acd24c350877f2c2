package stage_test

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACallOnDeviceMemory(t *testing.T) {
	ranks := openRanks(t, 2, func(_ int, c *stage.Config, _ *double) { c.PartBytes = 64 })
	for _, n := range []int{0, 1, 64, 65, 1000} {
		want := append(pattern(0, n), pattern(1, n)...)
		outs := make([][]byte, 2)
		for i, r := range ranks {
			in, _ := r.memory(pattern(i, n))
			var out fabric.DevPtr
			out, outs[i] = r.memory(make([]byte, 2*n))
			require.NoError(t, r.AllGather(r.s, out, in, n))
		}
		for i, r := range ranks {
			r.wait(t)
			assert.Equal(t, want, outs[i], "rank %d, %d bytes", i, n)
		}
	}
}
