package verbstest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

func BenchmarkWrite(b *testing.B) {
	for _, n := range []uint32{16, 64 << 10} {
		b.Run(map[bool]string{true: "16B", false: "64KiB"}[n == 16], func(b *testing.B) {
			f := fabric(b, 1, verbstest.Switch(2, 1))
			x, y := pair(b, f, verbs.QPConfig{}, verbs.Connection{})
			b.SetBytes(int64(n))
			for b.Loop() {
				_, err := x.QP.PostSend(x.Write(y, 0, 0, n))
				require.NoError(b, err)
				_, err = x.Poll(1)
				require.NoError(b, err)
			}
		})
	}
}
