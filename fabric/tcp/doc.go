// Package tcp is the fabric.Transport over sockets: a full mesh with one or more connections a pair, its lanes, spread over
// the pair's rails. The lower rank accepts.
//
// A call becomes one flow a peer: the spans of bytes to send to it and those to receive from it, cut into frames. Small
// calls are one frame each way, sent whole to every peer; large reductions go direct, each rank combining its own block
// of all ranks' bytes and sending the result to all. A call's owner polls the flows on its own goroutine. Where a pair
// has several lanes, idle ones take the next part, what a dead one had goes again, and one goroutine a transport looks
// after them: it finds the dead and has them dialled anew. Needs linux or
// darwin; elsewhere Open gives an error that is errors.ErrUnsupported.
package tcp
