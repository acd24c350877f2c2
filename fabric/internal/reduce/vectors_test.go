//go:build (amd64 || arm64) && !purego

package reduce

import (
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
)

// Without this, a kernel that nothing calls would pass every comparison.
func TestKernelsDoTheWholeVectors(t *testing.T) {
	for dt, op := range pairs {
		has := dt.Float() || dt == fabric.I32 || dt == fabric.I64 && op == fabric.Sum
		if has && !capable(dt) {
			t.Logf("this processor has no vectors for %v", dt)
			has = false
		}
		ins := [][]byte{noise(1000, 1), noise(1000, 2)}
		want := 0
		if has {
			want = 1000 / vectorBytes * vectorBytes
		}
		assert.Equal(t, want, vectors(make([]byte, 1000), ins, dt, op), "bytes of %v %v", dt, op)
	}
}
