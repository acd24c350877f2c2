package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hipfabric/hipfabric"
)

// idle is what all ranks of a group, open in this process without a call in flight, take of one core.
type idle struct {
	world, lanes int
	over         time.Duration
	dir          string
}

// resting is idle's only key.
var resting = key{op: "idle group"}

func (i *idle) prepare(_ context.Context, dir string) error {
	i.dir = dir
	_, err := processorTime()
	return err
}

// measureBoth gives the group's share and the most that it may have, in percent of a core.
func (i *idle) measureBoth(ctx context.Context) (ours, theirs results, err error) {
	groups, err := i.open(ctx)
	if err == nil {
		ours, err = i.rest(ctx)
	}
	for _, err2 := range each(len(groups), func(r int) error {
		if groups[r] == nil {
			return nil
		}
		return groups[r].Close(ctx)
	}) {
		err = errors.Join(err, err2)
	}
	return ours, results{resting: idleShare}, err
}

func (i *idle) rest(ctx context.Context) (results, error) {
	before, err := processorTime()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(i.over):
	}
	after, err := processorTime()
	return results{resting: 100 * float64(after-before) / float64(time.Since(began))}, err
}

// open has every rank make one call, so that all that a group in use has is there.
func (i *idle) open(ctx context.Context) ([]*hipfabric.Group, error) {
	meeting, err := os.MkdirTemp(i.dir, "idle")
	if err != nil {
		return nil, err
	}
	groups := make([]*hipfabric.Group, i.world)
	return groups, errors.Join(each(i.world, func(r int) (err error) {
		groups[r], err = hipfabric.Open(ctx, hipfabric.Config{Rank: r, World: i.world, Lanes: i.lanes, OpenTimeout: oneRun, Logger: slog.New(slog.DiscardHandler),
			Master: "file:" + filepath.Join(meeting, "master")})
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
		return groups[r].Host().Barrier()
	})...)
}

// each calls f for 0 to n-1 at once.
func each(n int, f func(r int) error) []error {
	errs, done := make([]error, n), make(chan struct{})
	for r := range n {
		go func() {
			errs[r] = f(r)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	return errs
}
