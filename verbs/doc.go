// Package verbs is ibverbs for Go: devices, ports, GIDs, protection domains, registered memory, completion queues with their
// channels, reliable connected queue pairs and asynchronous events of whatever libibverbs is there at run time. It binds
// thinly: a call does what the verb does, and its doc names the C prototype.
//
//	Open -> Library -> Device -> Context -> PD -> MR, QP
//	                                     -> Channel -> CQ
//
// Open loads libibverbs.so.1; a build needs its header (libibverbs-dev) and links nothing of it. OpenTable takes any other
// table of the same calls, so that all code here runs unchanged on HCAs that are wired in memory. The table, internal/driver's
// Table, has raw handles and errnos, about one method a verb; a chain is posted, and a batch polled, by one call of it.
//
// Library.Seam gives all of it in raw handles and built-in types, which is what fabric/roce runs on.
//
// What is made here lasts until its Close, which is idempotent; Context.Close closes all that is left of its own. Use after
// Close is an error that is os.ErrClosed. No finaliser frees anything, since a device may be using it. Every call is safe for
// concurrent use, and none blocks but Channel.Wait and Context.NextEvent, which end by their context or by Close. Registering
// takes milliseconds a MiB; posting and polling allocate nothing.
//
// A device reads and writes only memory that was registered: whole pages outside Go's heap, as NewMemory gives them. Such pages are left
// out of a child that C code forks (MADV_DONTFORK); children of os/exec share nothing and are safe.
//
// Of a failed call the error is *Error; of failed work, *CompletionError. Work that was flushed failed because other work did:
// QP.Err and Cause give the flushed one only while they know of no other.
//
// A build without cgo, with the tag noverbs, or not for Linux, has it all but can load nothing: the error is
// errors.ErrUnsupported.
package verbs
