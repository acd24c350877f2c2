// Package flow says what a call moves between this rank and each peer, whatever carries it: which spans go and come, cut into
// parts, what is combined once it is here, what this rank does for itself, and how a call that is not the peer's is told.
package flow
