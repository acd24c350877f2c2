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

func (c *Conn) write(most int) (int, syscall.Errno) {
	return uninterrupted((*Conn).writeOnce, c, min(most, mostAtOnce))
}

func (c *Conn) read() (int, syscall.Errno) { return uninterrupted((*Conn).readOnce, c, mostAtOnce) }

// uninterrupted makes a system call again for as long as a signal ends it.
func uninterrupted(call func(*Conn, int) (int, syscall.Errno), c *Conn, most int) (int, syscall.Errno) {
	for {
		if n, errno := call(c, most); errno != unix.EINTR {
			return n, errno
		}
	}
}

func (c *Conn) writeOnce(most int) (int, syscall.Errno) {
	t := &c.out
	switch {
	case t.inlined():
		return send(c.fd, t.stage[t.moved:t.moved+most])
	case t.moved >= HeaderSize:
		return send(c.fd, t.payload[t.moved-HeaderSize:][:most])
	default:
		head := min(HeaderSize-t.moved, most)
		count := t.vector.point(t.stage[t.moved:][:head], t.payload[:most-head])
		t.vector.msg.Iov = &t.vector.iov[0]
		t.vector.msg.SetIovlen(count)
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&t.vector.msg)), unix.MSG_NOSIGNAL, 0, 0, 0)
		return int(n), errno
	}
}

func (c *Conn) readOnce(most int) (int, syscall.Errno) {
	in := &c.in
	head, body := in.room(most)
	if len(body) == 0 {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(unsafe.SliceData(head))), uintptr(len(head)), 0, 0, 0)
		return int(n), errno
	}
	count := in.vector.point(head, body)
	n, _, errno := syscall.RawSyscall6(unix.SYS_READV, uintptr(c.fd), uintptr(unsafe.Pointer(&in.vector.iov[0])), uintptr(count), 0, 0, 0)
	return int(n), errno
}

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// point aims the vector at the rest of a header and at a payload.
func (v *vector) point(head, body []byte) int {
	v.iov[0].Base = unsafe.SliceData(head)
	v.iov[0].SetLen(len(head))
	if len(body) == 0 {
		return 1
	}
	v.iov[1].Base = unsafe.SliceData(body)
	v.iov[1].SetLen(len(body))
	return 2
}

// YieldThread lets another thread of this machine run: who share a core wait for each other's turns.
func YieldThread() { _, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// look asks poll(2) without waiting, and says whether anything is worth a try.
func look(fds []unix.PollFd) bool {
	var now unix.Timespec
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n > 0
}
