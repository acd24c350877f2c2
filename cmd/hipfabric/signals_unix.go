//go:build unix

package main

import (
	"os"
	"syscall"
)

func terminate() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGHUP} }
