//go:build !linux && !darwin

package link

import "syscall"

type vector struct{}

func (c *Conn) write(*transfer, int) (int, syscall.Errno) { return 0, syscall.EINVAL }
func (c *Conn) read(*transfer) (int, syscall.Errno)       { return 0, syscall.EINVAL }

func yieldThread() {}

func closeSocket(int) {}
