// Package stage is the device path over any host path: an engine's stream publishes that a call's input is there and waits
// for its result, and a proxy of this package brings the bytes down to pinned memory, over the wire, and up again.
//
//	engine's stream -> gate (words | kernels) -> ring -> proxy: down, wire, up -> done word -> engine's stream
//
// In reading order: queue.go checks a call and gives it to its gate, words.go or kernels.go (with launch.go, descriptor.go and
// plan.go for captured graphs); layout.go is the memory that stream and proxy share. proxy.go drives all groups of a device;
// call.go is a part's way: fetch.go, wire.go, lift.go, with the slabs of slab.go and the copy streams of copier.go. sync.go
// waits for a stream. failure.go and watch.go are what happens when something breaks, close.go how it all is given back.
//
// Only what is registered here is touched by the CPU in place of a copy, and only on a device that shares its memory with it.
// Every stream that waits is let go, whatever fails, and no memory that the device may still write is freed.
//
// Each guard of this path has a test that fails without it:
//
//	a part says what it is a part of             TestAPartIsNoCall, TestLayoutsThatOnlyDifferWhole
//	a stream waits for done: words               TestACallOnDeviceMemory, TestContractInParts
//	a stream waits for done: kernels             TestCapturedStepsAreReplayed, TestContractOfKernelsOnHIPInParts
//	the proxy waits for ready: words             TestContractInParts/held
//	the proxy waits for ready: kernels           TestCapturedStepsAreReplayed
//	a copy down has landed before the wire       TestCopiesAreWaitedFor, TestContractInParts
//	PartBytes has its bounds                     TestBadSettingsAreRefusedByName
//	PartBytes is the same on every rank          TestASettingThatDiffersIsAMismatchOnEveryRank, of hipfabric
//	a copy nobody can ask after frees nothing    TestAProbeThatFailsFreesNothing
//	a refused stream takes no slot               TestAStreamOfAnotherDeviceIsRefused
//	a kernel that gives up ends the group        TestAKernelThatGivesUpEndsTheGroup
//	a device that fails blames no image          TestALauncherThatFailsAtOpenEndsTheOthers
//	a launch that fails ends all ranks           TestALaunchThatFailsEndsAllRanksAlike
package stage
