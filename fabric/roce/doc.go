// Package roce moves calls over RoCE queue pairs: a fabric.Transport whose lanes are reliable queue pairs. docs/roce.md has the wire.
//
// The way of the data:
//
//	Transport.Begin -> pending (spans, as in fabric/tcp) -> lane (staging slot, credit) -> Driver.Post -> the peer's ring -> its pending
//
// Open brings it up over the bootstrap; each step ends with a vote, so that all ranks go on or none. OpenMailbox puts a path for small calls on device
// memory before another path: docs/mailbox.md.
package roce
