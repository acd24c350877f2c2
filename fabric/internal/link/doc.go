// Package link is the socket engine under the paths that move bytes over TCP: non-blocking connections that a caller
// polls on its own goroutine, and a wait that spins for a bounded time, then parks on one descriptor.
//
// A Group owns its connections and the descriptors behind them. One goroutine at a time drives it, between Enter and
// Leave; Abort and Close are for any goroutine, and Close lets a driver leave before it closes a descriptor. On Linux a
// park waits in an epoll instance of the group's own, which sits in the runtime's poller, so that no thread is held.
package link
