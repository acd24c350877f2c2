//go:build unix

package failure

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

// split makes two parts of four ranks: 1, 0 and 3, 2.
func (f fleet) split(t testing.TB, isolated bool) {
	t.Helper()
	for _, r := range f {
		r.tell(t, order{Do: "split", Rank: r.number, Color: r.number / 2, Isolated: isolated})
	}
	f.hear(t, "split")
}

// A death ends every part, isolated or not, in which its rank was or was not.
func TestAKillEndsEveryPart(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		for victim := range 4 {
			t.Run(fmt.Sprintf("isolated %v, rank %d", isolated, victim), func(t *testing.T) {
				f := launch(t, 4, order{})
				defer f.stop()
				f.split(t, isolated)
				f.tell(t, order{Do: "calls", Op: fabric.AllGather, Bytes: 4096})
				f.hear(t, "begun")
				f[victim].signal(syscall.SIGKILL)
				for _, r := range f.but(victim) {
					e := r.hear(t, "error")
					require.Equal(t, fabric.ErrPeerFailed.Error(), e.Kind, "%+v", e)
					assert.Equal(t, e.Text, e.Again, "the next call has another cause")
					if r.number/2 == victim/2 {
						assert.Equal(t, 1-victim%2, e.Peer, "by its number in the part: %+v", e)
						continue
					}
					assert.Equal(t, -1, e.Peer, "%+v", e)
					assert.Contains(t, e.Text, fmt.Sprintf("rank %d of group \"default\"", victim))
				}
			})
		}
	}
}

func TestPartsOfProcessesRunAndLeaveNothing(t *testing.T) {
	f := launch(t, 4, order{})
	for round := range uint64(3) {
		f.split(t, round%2 == 0)
		for _, r := range f { // the last call differs on one rank of each part
			r.tell(t, order{Do: "stream", Seed: round, Odd: []int{20, -1}[r.number%2]})
		}
		f.hear(t, "begun")
		for _, e := range f.hear(t, "error") {
			require.Equal(t, fabric.ErrDesync.Error(), e.Kind, "%+v", e)
		}
		f.tell(t, order{Do: "free"})
		f.hear(t, "closed")
		f.open(t, order{})
	}
	f.close(t)
}
