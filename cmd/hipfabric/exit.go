package main

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

// The exit codes.
const (
	exitOK          = 0
	exitOther       = 1
	exitUsage       = 2
	exitEnvironment = 3
	exitFailed      = 4
	exitDesync      = 5
	exitWrong       = 6
	exitDevice      = 7
)

// childCode is the code of a rank that run started, to be passed on.
type childCode int

// Error is blank: the supervisor has said which rank it was, and the rank itself why.
func (c childCode) Error() string { return "" }

// exitCode says which of the codes an error is.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var child childCode
	if errors.As(err, &child) {
		return int(child)
	}
	for _, c := range []struct {
		code int
		is   []error
	}{
		{exitWrong, []error{measure.ErrWrong}},
		{exitDevice, []error{fabric.ErrDevice}},
		{exitDesync, []error{fabric.ErrMismatch, fabric.ErrDesync}},
		{exitEnvironment, []error{fabric.ErrUnauthorized, fabric.ErrUnsupported, errors.ErrUnsupported}},
		{exitUsage, []error{fabric.ErrInvalid}},
		{exitFailed, []error{fabric.ErrPeerFailed, fabric.ErrTimeout, fabric.ErrAborted, context.DeadlineExceeded, context.Canceled}},
		{exitEnvironment, []error{exec.ErrNotFound, fs.ErrNotExist, fs.ErrPermission, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC}},
	} {
		for _, target := range c.is {
			if errors.Is(err, target) {
				return c.code
			}
		}
	}
	return exitOther
}
