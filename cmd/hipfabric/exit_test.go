package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

func TestEachErrorHasItsCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{fabric.ErrClosed, 1},
		{fabric.Invalidf("x"), 2},
		{fabric.Unsupportedf("x"), 3},
		{errors.ErrUnsupported, 3},
		{fabric.ErrUnauthorized, 3},
		{exec.ErrNotFound, 3},
		{os.ErrPermission, 3},
		{syscall.EADDRINUSE, 3},
		{syscall.EMFILE, 3},
		{fabric.ErrPeerFailed, 4},
		{fabric.ErrTimeout, 4},
		{fabric.ErrAborted, 4},
		{context.DeadlineExceeded, 4},
		{context.Canceled, 4},
		{fabric.ErrMismatch, 5},
		{fabric.ErrDesync, 5},
		{measure.ErrWrong, 6},
		{fabric.ErrDevice, 7},
		{&fabric.OpError{Op: "all-gather", Err: &fabric.Cause{Kind: fabric.ErrDevice, Err: fabric.ErrTimeout}}, 7},
		{fabric.ErrCapture, 3},
		{childCode(143), 143},
		{&fabric.OpError{Op: "open", Err: &fabric.Cause{Kind: fabric.ErrMismatch, Err: fabric.ErrTimeout}}, 5},
		{&fabric.Cause{Kind: fabric.ErrPeerFailed, Err: os.ErrPermission}, 4},
		{errors.Join(errors.New("first"), childCode(7)), 7},
	} {
		assert.Equal(t, c.want, exitCode(c.err), "%v", c.err)
		if c.err != nil {
			assert.Equal(t, c.want, exitCode(fmt.Errorf("wrapped: %w", c.err)), "%v", c.err)
		}
	}
}
