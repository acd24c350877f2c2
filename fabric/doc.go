// Package fabric holds the words that every path shares: the Call that moves, the Transport that moves it, the
// Collective that an engine calls, the errors it gets and the records it leaves. It does no I/O and needs no cgo.
//
// The way of the data, one all-gather from top to bottom:
//
//	Collective.AllGather   checks the arguments, numbers the call, records it, applies the deadline   (fabric)
//	Transport.Begin, Poll  turns the call into frames for each peer                                   (fabric/tcp)
//	link.Conn              writes and reads them on non-blocking sockets, spins, then parks           (fabric/internal/link)
//	frame.Header           says to the peer which call, part and bytes they are                       (fabric/internal/frame)
//	the peer's same files, upwards
//
// Over device memory a StreamCollective checks a call and queues it on the engine's stream by a StreamTransport
// (fabric/stage), which makes it on a Collective of its own, in parts, once the stream has come to it.
//
// A group fails as one: the first cause, settled by an Arbiter (fabric/bootstrap), is what every rank returns from then
// on. Buffers belong to a call until it has returned, and those of a queued one until its stream has passed it.
package fabric
