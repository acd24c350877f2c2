// Package hipfabric lets an inference engine move tensors between its ranks.
//
// Open joins the ranks of a group and brings up the best path that all of them can use; Group.Host has the collectives
// on host memory, Group.Device those on device memory, queued on a stream of the engine's, and Group.Control the ordered
// small messages that idle followers wait on. FromEnv fills a Config for a process that `hipfabric run` started, and Serve
// opens a group again after a failure.
//
//	cfg, err := hipfabric.FromEnv()
//	group, err := hipfabric.Open(ctx, cfg)
//	err = group.Host().AllGather(out, in)
//	err = group.Close(ctx)
//
// The package composes others that stand alone: fabric (the words, the collectives), fabric/bootstrap (how ranks meet
// and fail), fabric/tcp (a path), fabric/stage (device memory over a path), hipgo (HIP). An engine on tcp alone imports
// fabric/bootstrap and fabric/tcp and needs no C compiler; built without cgo this package has all but Device, which then says so.
// It reads no environment, but for FromEnv, and has no global state.
//
// A group fails as one: the first cause ends it on every rank, every later call returns that same cause, and Close and
// Open (or Serve) begin again. docs/guide.md says which error means what and what to do.
package hipfabric
