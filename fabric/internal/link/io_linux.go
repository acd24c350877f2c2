package link

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vector holds the two buffers of a large frame, where the kernel can read them without an allocation a call.
type vector struct {
	iov [2]unix.Iovec
	msg unix.Msghdr
}

// Raw system calls: the sockets never block, so the scheduler need not hear of them.

func (c *Conn) write(t *transfer, most int) (int, syscall.Errno) {
	return uninterrupted((*Conn).writeOnce, c, t, min(most, mostAtOnce))
}

func (c *Conn) read(t *transfer) (int, syscall.Errno) {
	return uninterrupted((*Conn).readOnce, c, t, min(t.whole-t.moved, mostAtOnce))
}

// uninterrupted makes a system call again for as long as a signal ends it.
func uninterrupted(call func(*Conn, *transfer, int) (int, syscall.Errno), c *Conn, t *transfer, most int) (int, syscall.Errno) {
	for {
		if n, errno := call(c, t, most); errno != unix.EINTR {
			return n, errno
		}
	}
}

func (c *Conn) writeOnce(t *transfer, most int) (int, syscall.Errno) {
	var n uintptr
	var errno syscall.Errno
	switch {
	case t.inlined():
		n, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&t.stage[t.moved])), uintptr(most),
			unix.MSG_NOSIGNAL, 0, 0)
	case t.moved >= HeaderSize:
		n, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&t.payload[t.moved-HeaderSize])), uintptr(most),
			unix.MSG_NOSIGNAL, 0, 0)
	default:
		count := t.vector.point(t, most)
		t.vector.msg.Iov = &t.vector.iov[0]
		t.vector.msg.SetIovlen(count)
		n, _, errno = syscall.RawSyscall6(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&t.vector.msg)), unix.MSG_NOSIGNAL, 0, 0, 0)
	}
	return int(n), errno
}

func (c *Conn) readOnce(t *transfer, most int) (int, syscall.Errno) {
	var n uintptr
	var errno syscall.Errno
	switch {
	case t.inlined():
		n, _, errno = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&t.stage[t.moved])), uintptr(most), 0, 0, 0)
	case t.moved >= HeaderSize:
		n, _, errno = syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&t.payload[t.moved-HeaderSize])), uintptr(most), 0, 0, 0)
	default:
		count := t.vector.point(t, most)
		n, _, errno = syscall.RawSyscall6(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&t.vector.iov[0])), uintptr(count), 0, 0, 0)
	}
	return int(n), errno
}

// point aims the vector at what is left of the header and at the payload, most bytes in all.
func (v *vector) point(t *transfer, most int) int {
	v.iov[0].Base = &t.stage[t.moved]
	head := min(HeaderSize-t.moved, most)
	v.iov[0].SetLen(head)
	if most == head {
		return 1
	}
	v.iov[1].Base = &t.payload[0]
	v.iov[1].SetLen(most - head)
	return 2
}

// yield lets another thread of this machine run: ranks that share a core wait for each other's turns.
func yieldThread() { _, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// look asks poll(2) without waiting, and says whether anything is worth a try.
func look(fds []unix.PollFd) bool {
	var now unix.Timespec
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n > 0
}

func closeSocket(fd int) { _ = unix.Close(fd) }
