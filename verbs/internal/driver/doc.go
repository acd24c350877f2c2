// Package driver is the table of calls that package verbs makes, and libibverbs behind it: the only cgo of verbs.
//
// A Table has libibverbs' calls as package verbs needs them: handles are uintptr, every call returns an errno (0: success),
// numbers are those of <infiniband/verbs.h>, counts and lengths are checked by package verbs before. Library is the real one;
// verbs.OpenTable takes any other, so that the shipped code runs unchanged on HCAs that are wired in memory. Groups of calls:
//
//	library      Library, Has, Absence
//	devices      Devices, Open, Close, Attr, Port, GIDs, PKey
//	memory       AllocPD, FreePD, Register, RegisterDMABuf, Deregister
//	completions  CreateChannel, DestroyChannel, CQEvent, CreateCQ, DestroyCQ, Arm, Poll
//	queue pairs  CreateQP, ModifyQP, QueryQP, DestroyQP, DataInOrder, PostSend, PostRecv
//	events       AsyncFD, AsyncEvent
//
// Poll, PostSend and PostRecv are one crossing into C a call, whatever the length of batch or chain. CQEvent and AsyncEvent do
// not block: package verbs parks on their descriptors. Without cgo on Linux, or with the build tag noverbs, nothing can be
// loaded and ErrBuild says so.
package driver
