package roce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

var _ Mesh = (*bootstrap.Session)(nil)

// newMeshes gives the ranks of a group in this process their meshes, each for one goroutine.
func newMeshes(world int) []Mesh {
	at := &room{world: world}
	all := make([]Mesh, world)
	for r := range all {
		all[r] = &memoryMesh{at, r}
	}
	return all
}

// onAll runs fn for all ranks at once, and gives what each returned.
func onAll(world int, fn func(rank int) error) []error {
	errs := make([]error, world)
	var wg sync.WaitGroup
	for r := range world {
		wg.Go(func() { errs[r] = fn(r) })
	}
	wg.Wait()
	return errs
}

type memoryMesh struct {
	room *room
	rank int
}

// room is where ranks meet, a round after the other.
type room struct {
	world int
	mu    sync.Mutex
	now   *round
}

// round is what all ranks bring to one meeting.
type round struct {
	said []contribution
	here int
	full chan struct{}
}

type contribution struct {
	label string
	blob  []byte
	no    error
}

func (m *memoryMesh) Rank() int    { return m.rank }
func (m *memoryMesh) World() int   { return m.room.world }
func (m *memoryMesh) ID() [16]byte { return [16]byte{1, 2, 3} }

func (m *memoryMesh) AllGather(ctx context.Context, blob []byte) ([][]byte, error) {
	if len(blob) > bootstrap.MaxBlob {
		return nil, fabric.Invalidf("a blob of %d bytes", len(blob))
	}
	said, err := m.room.meet(ctx, m.rank, contribution{label: "all-gather", blob: append([]byte{}, blob...)})
	blobs := make([][]byte, len(said))
	for r := range said {
		blobs[r] = append([]byte{}, said[r].blob...)
	}
	return blobs, err
}

func (m *memoryMesh) Vote(ctx context.Context, step string, no error) error {
	said, err := m.room.meet(ctx, m.rank, contribution{label: "vote on " + step, no: no})
	if err != nil {
		return err
	}
	e := &voteError{step: step, no: map[int]string{}}
	for r := range said {
		if n := said[r].no; n != nil {
			if e.kind == nil {
				e.kind = kindOf(n)
			}
			e.no[r] = n.Error()
		}
	}
	if len(e.no) == 0 {
		return nil
	}
	return e
}

func (at *room) meet(ctx context.Context, rank int, c contribution) ([]contribution, error) {
	at.mu.Lock()
	if at.now == nil {
		at.now = &round{said: make([]contribution, at.world), full: make(chan struct{})}
	}
	r := at.now
	r.said[rank] = c
	if r.here++; r.here == at.world {
		at.now = nil
		close(r.full)
	}
	at.mu.Unlock()
	select {
	case <-r.full:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for other := range r.said {
		if r.said[other].label != r.said[0].label {
			return nil, fmt.Errorf("%w: rank 0 is in %s, rank %d in %s", fabric.ErrDesync, r.said[0].label, other, r.said[other].label)
		}
	}
	return r.said, nil
}

// voteError is as bootstrap.VoteError.
type voteError struct {
	step string
	no   map[int]string
	kind error
}

func (e *voteError) Error() string {
	var all []string
	for r := range fabric.MaxWorld {
		if reason, there := e.no[r]; there {
			all = append(all, fmt.Sprintf("rank %d: %s", r, reason))
		}
	}
	return fmt.Sprintf("vote on %s: no from %s", e.step, strings.Join(all, "; "))
}

func (e *voteError) Unwrap() error { return e.kind }

func kindOf(err error) error {
	for _, kind := range []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrMismatch, fabric.ErrDesync, fabric.ErrPeerFailed, fabric.ErrTimeout} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return fabric.ErrAborted
}

func TestRanksMeetInMemory(t *testing.T) {
	meshes := newMeshes(3)
	for round := range 50 {
		errs := onAll(3, func(r int) error {
			blobs, err := meshes[r].AllGather(t.Context(), []byte{byte(r), byte(round)})
			if err != nil {
				return err
			}
			if string(blobs[1]) != string([]byte{1, byte(round)}) {
				return fmt.Errorf("round %d: %v", round, blobs)
			}
			return meshes[r].Vote(t.Context(), "this", nil)
		})
		require.NoError(t, errors.Join(errs...))
	}
	errs := onAll(3, func(r int) error {
		if r == 0 {
			return meshes[r].Vote(t.Context(), "that", nil)
		}
		return meshes[r].Vote(t.Context(), "that", fabric.Invalidf("not rank %d", r))
	})
	for r, err := range errs {
		assert.ErrorIs(t, err, fabric.ErrInvalid, "rank %d", r)
		assert.EqualError(t, err, "vote on that: no from rank 1: invalid: not rank 1; rank 2: invalid: not rank 2")
	}
	errs = onAll(3, func(r int) error {
		if r == 2 {
			_, err := meshes[r].AllGather(t.Context(), nil)
			return err
		}
		return meshes[r].Vote(t.Context(), "that", nil)
	})
	for _, err := range errs {
		assert.ErrorIs(t, err, fabric.ErrDesync)
	}
}
