//go:build unix

package verbs

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

// foreign is a table of devices that speak other protocols.
type foreign struct{ table }

func (*foreign) Devices() ([]driver.Device, syscall.Errno) {
	return []driver.Device{{Name: "iwarp0", NodeType: 4, Transport: 1}, {Name: "usnic0", NodeType: 6, Transport: 2}}, 0
}

func TestPortsOfOtherProtocolsAreNone(t *testing.T) {
	_, err := OpenTable(&foreign{}).Seam().Ports()
	require.ErrorIs(t, err, ErrNoDevice)
	assert.ErrorContains(t, err, "iwarp0, usnic0 speak neither RoCE nor InfiniBand (table)")
}

// bare is a seam with a queue pair over a table that does nothing.
func bare(t testing.TB) (*table, *Seam, uintptr, uintptr) {
	table := &table{fd: -1}
	s := OpenTable(table).Seam()
	h, err := s.Open("go0", 64)
	require.NoError(t, err)
	q, err := s.NewQP(h, 1, 64, 64, 64)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(h)) })
	return table, s, h, q.Handle
}

func flagged() []SeamWork {
	return []SeamWork{
		{Pieces: [2]SeamPiece{{Addr: 1, Bytes: 64}, {Addr: 2, Bytes: 4096}}},
		{Pieces: [2]SeamPiece{{Addr: 3, Bytes: 8}}, Inline: true, Signaled: true},
	}
}

func TestAWorkIsTheRequestThatItSays(t *testing.T) {
	table, s, _, q := bare(t)
	_, err := s.Post(q, []SeamWork{
		{ID: 1, Pieces: [2]SeamPiece{{Addr: 9, LKey: 9}, {Addr: 2, Bytes: 5, LKey: 7}}, Remote: 3, RKey: 4, Imm: 6},
		{ID: 2, Imm: 8, Immediate: true, Inline: true},
		{ID: 3, Pieces: [2]SeamPiece{{Addr: 1, Bytes: 1}, {Addr: 2, Bytes: 2}}, Signaled: true},
	})
	require.NoError(t, err)
	assert.Equal(t, []driver.SendWR{
		{ID: 1, RemoteAddr: 3, RKey: 4, Op: uint32(OpWrite), SGEs: 1},
		{ID: 2, Op: uint32(OpWriteImm), Imm: 8, Flags: uint32(SendInline)},
		{ID: 3, Op: uint32(OpWrite), Flags: uint32(SendSignaled), SGEs: 2},
	}, table.sent)
	assert.Equal(t, []driver.SGE{{Addr: 2, Length: 5, LKey: 7}, {Addr: 1, Length: 1}, {Addr: 2, Length: 2}}, table.gathered, "pieces of no bytes are left out")
}

func TestASeamsHotCallsCrossOnceAndAllocateNothing(t *testing.T) {
	table, s, h, q := bare(t)
	chain, into := flagged(), make([]SeamCompletion, 16)
	for what, call := range map[string]func() error{
		"Post":         func() error { _, err := s.Post(q, chain); return err },
		"PostReceives": func() error { return s.PostReceives(q, 32) },
		"Poll":         func() error { _, err := s.Poll(h, into); return err },
	} {
		require.NoError(t, call())
		before := table.crossings.Load()
		require.NoError(t, call())
		assert.EqualValues(t, 1, table.crossings.Load()-before, what)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if err := call(); err != nil {
				t.Error(err)
			}
		}), what)
	}
}

// What opens and closes meanwhile replaces the table of handles under those who look into it.
func TestHandlesAreFoundWhileOthersComeAndGo(t *testing.T) {
	_, s, h, _ := bare(t)
	var all sync.WaitGroup
	for range 4 {
		q, err := s.NewQP(h, 1, 1, 1, 0)
		require.NoError(t, err)
		all.Add(2)
		go func() {
			defer all.Done()
			for range 200 {
				_, err := s.Post(q.Handle, flagged())
				assert.NoError(t, err)
			}
		}()
		go func() {
			defer all.Done()
			seen := map[uintptr]bool{}
			for range 200 {
				q, err := s.NewQP(h, 1, 1, 1, 0)
				assert.NoError(t, err)
				assert.False(t, seen[q.Handle])
				seen[q.Handle] = true
				assert.NoError(t, s.Close(q.Handle))
				_, err = s.Post(q.Handle, flagged())
				assert.ErrorIs(t, err, os.ErrClosed)
			}
		}()
	}
	all.Wait()
}

func TestHandlesEndByName(t *testing.T) {
	_, s, h, _ := bare(t)
	full := make([]*given, places)
	for i := range full {
		full[i] = &given{}
	}
	kept := s.given.open.Load()
	s.given.open.Store(&full)
	_, _, err := s.Alloc(1)
	require.EqualError(t, err, "verbs: 1048576 handles are open, and there are no more: close some")
	s.given.open.Store(kept)
	_, err = s.hca(h)
	require.NoError(t, err)
}

func BenchmarkSeamPostsAChainOfTwo(b *testing.B) {
	_, s, _, q := bare(b)
	chain := flagged()
	for b.Loop() {
		if _, err := s.Post(q, chain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeamPolls(b *testing.B) {
	_, s, h, _ := bare(b)
	into := make([]SeamCompletion, 16)
	for b.Loop() {
		if _, err := s.Poll(h, into); err != nil {
			b.Fatal(err)
		}
	}
}
