//go:build linux || darwin

package tcp

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/internal/frame"
)

const faultBytes = 100 // of a rank's contribution: a frame is its header and these

// faulty gathers twice between two ranks with a fault in what rank 0 sends, and gives both ranks' outputs and errors.
func faulty(t *testing.T, c Config, timeout time.Duration, f fabrictest.Fault) (outs [2][]byte, errs [2]error) {
	t.Helper()
	meshes := localMeshes(t, 2)
	f.Peer, f.Inbound = 0, true
	m := fabrictest.Faulty(meshes[1], f)
	arbiters := fabrictest.Arbiters(2)
	var ranks [2]*fabric.Collective
	var wg sync.WaitGroup
	for r, mesh := range []Mesh{meshes[0], m} {
		wg.Go(func() {
			tr, err := Open(context.Background(), mesh, c)
			if err != nil {
				t.Error(err)
				return
			}
			arbiters[r].OnCause(func() { tr.Abort(arbiters[r].Cause()) })
			ranks[r] = fabric.New(tr, fabric.Options{Timeout: timeout, Arbiter: arbiters[r]})
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	for r, c := range ranks {
		wg.Go(func() {
			in := bytes.Repeat([]byte{byte(r + 1)}, faultBytes)
			outs[r] = make([]byte, 2*faultBytes)
			for range 2 {
				if errs[r] = c.AllGather(outs[r], in); errs[r] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, c := range ranks {
		require.NoError(t, c.Close())
	}
	require.NoError(t, m.Close())
	return outs, errs
}

// offsets are those of two frames, dense around what matters.
func offsets() []int64 {
	var at []int64
	for i := int64(0); i < 2*(frame.Size+faultBytes); i += 7 {
		at = append(at, i)
	}
	return append(at, frame.Size-1, frame.Size, frame.Size+faultBytes-1, frame.Size+faultBytes)
}

func TestACutAnywhereEndsBothRanksAlike(t *testing.T) {
	for _, at := range offsets() {
		_, errs := faulty(t, Config{}, 20*time.Second, fabrictest.Fault{Kind: fabrictest.Cut, Offset: at})
		sameCause(t, errs, fabric.ErrPeerFailed, at)
	}
}

func TestACorruptByteAnywhereIsNamed(t *testing.T) {
	for _, at := range offsets() {
		_, errs := faulty(t, Config{Verify: true}, 20*time.Second, fabrictest.Fault{Kind: fabrictest.Corrupt, Offset: at})
		sameCause(t, errs, fabric.ErrPeerFailed, at)
		assert.ErrorContains(t, errs[1], "CRC32C", "offset %d", at)
	}
}

func TestLostBytesEndAtTheDeadline(t *testing.T) {
	for _, at := range []int64{0, 30, frame.Size, frame.Size + faultBytes + 5} {
		_, errs := faulty(t, Config{}, 100*time.Millisecond, fabrictest.Fault{Kind: fabrictest.Drop, Offset: at})
		sameCause(t, errs, fabric.ErrTimeout, at)
	}
}

func TestLateBytesAreAsGoodAsOthers(t *testing.T) {
	for _, at := range []int64{0, 30, frame.Size, frame.Size + 50} {
		outs, errs := faulty(t, Config{SpinFor: time.Millisecond}, 20*time.Second,
			fabrictest.Fault{Kind: fabrictest.Delay, Offset: at, For: 20 * time.Millisecond})
		want := append(bytes.Repeat([]byte{1}, faultBytes), bytes.Repeat([]byte{2}, faultBytes)...)
		for r := range outs {
			assert.NoError(t, errs[r])
			assert.Equal(t, want, outs[r], "rank %d, offset %d", r, at)
		}
	}
}

// sameCause holds the rank that saw the fault to kind, and the other to the same cause if it was still in a call.
func sameCause(t *testing.T, errs [2]error, kind error, at int64) {
	t.Helper()
	require.ErrorIs(t, errs[1], kind, "offset %d", at)
	require.NoError(t, fabrictest.WalkError(errs[1]))
	if errs[0] != nil {
		assert.Equal(t, fabric.CauseOf(errs[1]), fabric.CauseOf(errs[0]), "offset %d", at)
	}
}
