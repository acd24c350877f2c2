package fabrictest

import (
	"testing"
	"time"
)

// Opener opens a world of subjects that meet each other, in rank order, wired so that the first cause of one is the
// cause of all. The suite closes them.
type Opener func(t *testing.T, world int, o SubjectOptions) []Subject

// Run holds a path to the whole contract: every operation, dtype, reduction, world, size and layout, and every failure.
// Under the race detector its values are RunPairwise's.
func Run(t *testing.T, open Opener) {
	cases := product()
	if underRace {
		cases = covering()
	}
	run(t, open, cases)
}

// RunPairwise is Run with fewer values: any two levels of two factors meet, not all of all. For paths whose calls are
// slow.
func RunPairwise(t *testing.T, open Opener) { run(t, open, covering()) }

func run(t *testing.T, open Opener, cases []valueCase) {
	t.Run("values", func(t *testing.T) { testValues(t, open, cases) })
	for _, part := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"barrier", testBarrier}, {"one-way", testOneWay}, {"ring", testRing}, {"facing-sends", testFacingSends},
		{"desync-operations", testDesyncOfOperations}, {"desync-fields", testDesyncOfFields},
		{"abort", testAbort}, {"silent-rank", testSilentRank}, {"close", testClose},
		{"two-at-once", testTwoAtOnce}, {"invalid", testInvalid}, {"parts", testParts},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open) })
	}
}

func openWorld(t *testing.T, open Opener, world int, o SubjectOptions) []Subject {
	t.Helper()
	subjects := open(t, world, o)
	if len(subjects) != world {
		t.Fatalf("opened %d subjects for a world of %d", len(subjects), world)
	}
	t.Cleanup(func() {
		for _, s := range subjects {
			if err := s.Close(); err != nil {
				t.Errorf("rank %d: close: %v", s.Rank(), err)
			}
		}
	})
	for r, s := range subjects {
		if s.Rank() != r || s.World() != world {
			t.Fatalf("subject %d says it is rank %d of %d", r, s.Rank(), s.World())
		}
	}
	return subjects
}

// together runs fn once a rank, all at once, and fails the test for each error, and for each rank that does not end
// within limit.
func together(t *testing.T, world int, limit time.Duration, fn func(rank int) error) {
	t.Helper()
	for rank, err := range gather(t, world, limit, fn) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// gather is together for those who expect errors.
func gather(t *testing.T, world int, limit time.Duration, fn func(rank int) error) []error {
	t.Helper()
	type result struct {
		rank int
		err  error
	}
	ended := make(chan result, world)
	for rank := range world {
		go func() { ended <- result{rank, fn(rank)} }()
	}
	errs, left := make([]error, world), map[int]bool{}
	for rank := range world {
		left[rank] = true
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	for len(left) > 0 {
		select {
		case r := <-ended:
			errs[r.rank] = r.err
			delete(left, r.rank)
		case <-late.C:
			var ranks []int
			for rank := range left {
				ranks = append(ranks, rank)
			}
			t.Fatalf("ranks %v have not ended after %v", ranks, limit)
		}
	}
	return errs
}
