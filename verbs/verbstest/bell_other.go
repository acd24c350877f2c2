//go:build !unix

package verbstest

import "syscall"

// bell has no descriptor here: events can be polled only.
type bell struct{}

func newBell() (bell, syscall.Errno) { return bell{}, 0 }

func (bell) fd() int { return -1 }

func (bell) ring() {}

func (bell) silence() {}

func (bell) close() {}
