//go:build unix

package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

const (
	short = 500 * time.Millisecond // a Timeout
	large = 64 << 20
)

func TestASendThatNobodyTakesTimesOutOnBoth(t *testing.T) {
	f := launch(t, 2, order{Timeout: short})
	f[0].tell(t, order{Do: "once", Op: fabric.Send, Bytes: large, Peer: 1})
	f[0].hear(t, "begun")
	late := time.After(3 * short)
	first := f[0].hear(t, "error")
	<-late
	f[1].tell(t, order{Do: "once", Op: fabric.Recv, Bytes: large, Peer: 0})
	f[1].hear(t, "begun")
	second := f[1].hear(t, "error")
	sameCause(t, fabric.ErrTimeout, 1, []event{first, second})
	f.stop()
}

func TestWithoutATimeoutALateReceiverIsAwaited(t *testing.T) {
	f := launch(t, 2, order{Timeout: fabric.NoTimeout})
	f[0].tell(t, order{Do: "once", Op: fabric.Send, Bytes: large, Peer: 1})
	f[0].hear(t, "begun")
	f[0].silent(t, time.After(3*short))
	f[1].tell(t, order{Do: "once", Op: fabric.Recv, Bytes: large, Peer: 0})
	f[1].hear(t, "begun")
	f.hear(t, "done")
	f.close(t)
}

func TestControlWaitsLongerThanAnyTimeout(t *testing.T) {
	f := launch(t, 3, order{Timeout: short})
	followers := f.but(0)
	followers.tell(t, order{Do: "park"})
	followers.hear(t, "begun")
	followers[0].silent(t, time.After(3*short))
	f[0].tell(t, order{Do: "message"})
	f.hear(t, "done")
	f.tell(t, order{Do: "once", Op: fabric.AllGather, Bytes: 1000})
	f.hear(t, "begun")
	f.hear(t, "done")
	f.close(t)
}

func TestTwoHundredGroupsLeaveNothing(t *testing.T) {
	times := 200
	if raceDetector || testing.Short() {
		times = 30
	}
	f := fleet{start(t, 0), start(t, 1)}
	master := "file:" + t.TempDir() + "/master"
	for n, r := range f {
		r.tell(t, order{Do: "reopen", Rank: n, World: 2, Master: master, Count: times})
	}
	for _, e := range f.hear(t, "leak") {
		require.NotZero(t, e.FdsBefore)
		assert.LessOrEqual(t, e.Fds, e.FdsBefore, "descriptors")
		assert.LessOrEqual(t, e.Goroutines, e.Before, "goroutines: %s", e.Description)
	}
	f.stop()
}
