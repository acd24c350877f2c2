// Package bootstrap joins the ranks of a group and keeps them joined: rank 0 listens, the others dial it, every
// connection proves that it knows the group's secret before anything else is said, and the control connections stay for
// heartbeats, the group's one cause of failure, and an engine's small messages.
//
// The way of a rank through it, with the file of each step:
//
//	Join           resolve the master, dial or listen until the deadline      (join.go, resolve.go, listen.go)
//	hello          prove the secret, both ways, before a word of content      (hello.go, handshake.go)
//	formation      rank 0 compares settings and hands out the table of ranks  (form.go)
//	loop           one thread owns the control connections                    (loop.go, link.go, frames.go)
//	monitor        who is silent for how long, and whether that is a verdict  (monitor.go)
//	arbiter        which failure is the cause that all ranks return           (arbiter.go)
//	gather         blob exchange, settings compare, vote                      (gather.go)
//	Control        an engine's messages and barriers, relayed by rank 0       (control.go)
//	Sub            a part of the ranks as a group, its exchanges, its cause    (sub.go, sub_gather.go, sub_cause.go)
//	rails          the ways between hosts, and what is wrong with one         (rails.go, probe.go)
//	paths          a control connection over every rail to rank 0             (path.go, paths.go, loop_paths.go)
//	Dial, Accept   authenticated data connections for fabric/tcp              (data.go)
//
// A Session lives from Join to Close. Its goroutines are the listener's, which wait in accept, one that is locked to its
// thread and, on a rank with several rails to rank 0, one a rail that dials it anew; all have ended when Close returns. World 1 opens no socket.
package bootstrap
