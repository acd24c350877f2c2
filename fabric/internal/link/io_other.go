//go:build !linux && !darwin

package link

import "syscall"

type vector struct{}

func (c *Conn) write(int) (int, syscall.Errno) { return 0, syscall.EINVAL }
func (c *Conn) read() (int, syscall.Errno)     { return 0, syscall.EINVAL }

func YieldThread() {}

func closeSocket(int)  {}
func resetSocket(int)  {}
func closeQuietly(int) {}
