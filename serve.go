package hipfabric

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
)

// How Serve waits between two groups: doubling from the first to the most, and from the first again once a group has
// lived for longer than the most.
const (
	serveFirstWait = 100 * time.Millisecond
	serveMostWait  = 10 * time.Second
	serveGoodbye   = 5 * time.Second // for the goodbye of a group that is given up
)

// Serve opens the group and runs fn in it; when the group fails it closes it and opens again, waiting longer each time
// (100 ms doubling to 10 s, half of it at random), so that a restarted rank finds the others. Every rank calls it.
//
// fn's context ends when ctx does or the group fails; with ctx's end the group is aborted on every rank, so a call that
// fn is in returns. fn must not Close the group.
//
// Serve returns nil when fn does; fn's error when the group is still healthy, after aborting the group with it; ctx's
// error when ctx ends; and Open's error when to try again cannot help: ErrInvalid, ErrUnsupported, ErrUnauthorized,
// ErrMismatch, but for a port that is taken. Everything else is logged at Warn and tried again.
func Serve(ctx context.Context, cfg Config, fn func(context.Context, *Group) error) error {
	c := cfg.withDefaults()
	if err := c.validateAlone(); err != nil {
		return openError(&cfg, err)
	}
	log := c.Logger
	wait := serveFirstWait
	for {
		began := time.Now()
		again, err := serveOnce(ctx, cfg, fn)
		if !again {
			return err
		}
		if time.Since(began) > serveMostWait {
			wait = serveFirstWait
		}
		pause := wait/2 + rand.N(wait/2+1)
		log.Warn("no group; opening it again", keyGroup, cfg.withDefaults().Name, keyRank, cfg.Rank, keyErr, err, keyWait, pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		wait = min(2*wait, serveMostWait)
	}
}

// serveOnce is one life of the group; again says that another may help.
func serveOnce(ctx context.Context, cfg Config, fn func(context.Context, *Group) error) (again bool, err error) {
	g, err := Open(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return !final(err), err
	}
	inside, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	abort := context.AfterFunc(ctx, func() { g.Abort(context.Cause(ctx)) })
	left := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-g.Done():
			cancel(g.Err())
		case <-left:
		}
	}()
	err = fn(inside, g)
	ended := ctx.Err() != nil
	close(left)
	<-watched
	abort()

	failed := g.Err()
	if err != nil && failed == nil && !ended {
		g.Abort(err)
	}
	goodbye, done := context.WithTimeout(context.WithoutCancel(ctx), serveGoodbye)
	defer done()
	closeErr := g.Close(goodbye)
	switch {
	case err == nil:
		return false, closeErr
	case ended:
		return false, context.Cause(ctx)
	case failed != nil:
		return true, err
	default:
		return false, err
	}
}

// final says that no later Open can do better.
func final(err error) bool {
	if errors.Is(err, syscall.EADDRINUSE) {
		return false // an earlier life of this rank may be on its way out
	}
	for _, s := range []error{fabric.ErrInvalid, fabric.ErrUnsupported, fabric.ErrUnauthorized, fabric.ErrMismatch} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}
