package conform

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// broken is a runtime that gets one thing wrong: by the software device's own settings and faults, or by a call that
// means something else.
type broken struct {
	name     string
	settings hiptest.Settings
	faults   []hiptest.Fault
	calls    func(*testing.T, *hiptest.World, *runtimeCalls)
	checks   map[string]Result
}

// otherwise makes a wait of condition from mean another.
func otherwise(change func(v *uint64, c *hipgo.Condition, mask *uint64)) func(*testing.T, *hiptest.World, *runtimeCalls) {
	return func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
		right := calls.wait
		calls.wait = func(s hipgo.Stream, bits int, addr uintptr, v uint64, c hipgo.Condition, mask uint64) error {
			change(&v, &c, &mask)
			return right(s, bits, addr, v, c, mask)
		}
	}
}

func noWaits(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
	calls.wait = func(hipgo.Stream, int, uintptr, uint64, hipgo.Condition, uint64) error { return nil }
}

// prefetch makes copies from host memory take the bytes of the time at which they were queued.
func prefetch(t *testing.T, w *hiptest.World, calls *runtimeCalls) {
	right := calls.copy
	calls.copy = func(s hipgo.Stream, dst, src uintptr, n int) error {
		at, err := w.Runtime().Pointer(src)
		require.NoError(t, err)
		if at.Kind != hipgo.MemoryHost {
			return right(s, dst, src, n)
		}
		kept, err := w.Device(0).HostMalloc(n)
		require.NoError(t, err)
		t.Cleanup(func() { kept.Close() })
		copier, err := w.Device(0).NewStreamCUMask(nil)
		require.NoError(t, err)
		require.NoError(t, copier.Copy(kept.Ptr(), src, n, hipgo.CopyDefault))
		require.NoError(t, copier.Synchronize(t.Context()))
		require.NoError(t, copier.Close())
		return right(s, dst, kept.Ptr(), n)
	}
}

func brokenRuntimes() []broken {
	call := func(name string, code, nth int) []hiptest.Fault {
		return []hiptest.Fault{{Call: name, Code: code, Nth: nth}}
	}
	always := func(name string, code int) []hiptest.Fault {
		return []hiptest.Fault{{Call: name, Code: code, Times: -1}}
	}
	lost := func(kind hiptest.CopyFault, nth int) []hiptest.Fault { return []hiptest.Fault{{Copy: kind, Nth: nth}} }
	return []broken{
		{name: "a wait is refused", faults: call("hipStreamWaitValue64", 1, 1), checks: map[string]Result{"self-test": Fail}},
		{name: "waits hold nothing", calls: noWaits, checks: map[string]Result{
			"order": Fail, "wait64-gte": Fail, "wait64-eq": Fail, "wait64-and": Fail, "wait64-nor": Fail, "wait64-mask": Fail,
			"wait32-gte": Fail, "wait32-eq": Fail, "wait32-and": Fail, "wait32-nor": Fail, "wait32-mask": Fail,
			"landing-late": Fail, "event-not-ready": Fail, "event-stream-wait": Fail, "release-host-store": Fail,
		}},
		{name: "Gte is Eq", checks: map[string]Result{
			"wait64-gte": Fail, "wait32-gte": Fail, "wait64-gte-unsigned": Known, "wait32-gte-unsigned": Known,
		}, calls: otherwise(func(_ *uint64, c *hipgo.Condition, _ *uint64) {
			if *c == hipgo.ConditionGte {
				*c = hipgo.ConditionEq
			}
		})},
		{name: "Eq is Gte", checks: map[string]Result{"wait64-eq": Fail, "wait32-eq": Fail},
			calls: otherwise(func(_ *uint64, c *hipgo.Condition, _ *uint64) {
				if *c == hipgo.ConditionEq {
					*c = hipgo.ConditionGte
				}
			})},
		{name: "And is Nor", checks: map[string]Result{"wait64-and": Fail, "wait32-and": Fail},
			calls: otherwise(func(_ *uint64, c *hipgo.Condition, _ *uint64) {
				if *c == hipgo.ConditionAnd {
					*c = hipgo.ConditionNor
				}
			})},
		{name: "Nor is And", checks: map[string]Result{"wait64-nor": Fail, "wait32-nor": Fail},
			calls: otherwise(func(_ *uint64, c *hipgo.Condition, _ *uint64) {
				if *c == hipgo.ConditionNor {
					*c = hipgo.ConditionAnd
				}
			})},
		{name: "masks are not looked at", checks: map[string]Result{"wait64-mask": Fail, "wait32-mask": Fail},
			calls: otherwise(func(_ *uint64, _ *hipgo.Condition, mask *uint64) { *mask = allBits })},
		{name: "waits want more than was asked", checks: map[string]Result{"release-host-store": Fail, "wait64-nor-mask": Fail},
			calls: otherwise(func(v *uint64, c *hipgo.Condition, mask *uint64) {
				*v, *c, *mask = 1<<40, hipgo.ConditionGte, allBits
			})},
		{name: "32-bit waits want more than was asked", checks: map[string]Result{"wait32-nor-mask": Fail},
			calls: otherwise(func(v *uint64, c *hipgo.Condition, mask *uint64) {
				*v, *c, *mask = 1<<30, hipgo.ConditionGte, allBits
			})},
		{name: "32 bits are written as 64", checks: map[string]Result{"write-width": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				right := calls.write
				calls.write = func(s hipgo.Stream, _ int, addr uintptr, v uint64) error { return right(s, 64, addr, v) }
			}},
		{name: "a pair does not write", checks: map[string]Result{"write-wait": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				calls.writeWait = func(s hipgo.Stream, _ uintptr, _ uint64, done uintptr, d uint64) error {
					return s.WaitValue64(done, d, hipgo.ConditionGte, allBits)
				}
			}},
		{name: "writes with flags do nothing", checks: map[string]Result{"write-flags": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				calls.writeFlags = func(hipgo.Stream, uintptr, uint64, uint32) int { return 0 }
			}},
		{name: "only host stores release", settings: hiptest.Settings{HostReleases: true}, checks: map[string]Result{"release-stream-write": Known}},
		{name: "copies prefetch", calls: prefetch, checks: map[string]Result{
			"acquire-copy-64": Fail, "acquire-copy-16384": Fail, "acquire-copy-16385": Fail, "capture-replay": Fail,
		}},
		{name: "the seventh copy moves nothing", faults: lost(hiptest.CopyDropped, 7), checks: map[string]Result{"order": Fail, "coherent-host": Fail}},
		{name: "the sixth copy moves nothing", faults: lost(hiptest.CopyDropped, 6), checks: map[string]Result{
			"landing-event": Fail, "copy-own-16384": Fail, "copy-own-16385": Fail, "copy-own-1048576": Fail,
		}},
		{name: "only words of ours are written", checks: map[string]Result{"noncoherent-host": Fail},
			calls: func(t *testing.T, w *hiptest.World, calls *runtimeCalls) {
				right := calls.write
				calls.write = func(s hipgo.Stream, bits int, addr uintptr, v uint64) error {
					at, err := w.Runtime().Pointer(addr)
					require.NoError(t, err)
					if at.Size == 4096 {
						return nil
					}
					return right(s, bits, addr, v)
				}
			}},
		{name: "addresses are not known", faults: always("hipPointerGetAttributes", 1), checks: map[string]Result{"pointer-device": Fail, "pointer-host": Fail}},
		{name: "addresses cannot be asked about", faults: always("hipPointerGetAttributes", 999), checks: map[string]Result{"pointer-foreign": Fail}},
		{name: "events are not ready", faults: always("hipEventQuery", 600), checks: map[string]Result{"event-never-recorded": Fail}},
		{name: "a stream does not say that it is captured", checks: map[string]Result{"capture-status": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				calls.capturing = func(hipgo.Stream) (hipgo.CaptureStatus, error) { return hipgo.CaptureNone, nil }
			}},
		{name: "streams are always ready", checks: map[string]Result{"capture-query": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				calls.query = func(hipgo.Stream) (bool, error) { return true, nil }
			}},
		{name: "values run at once in a capture", checks: map[string]Result{"capture-write-value": Known, "capture-wait-value": Known}},
		{name: "values are lost in a capture", checks: map[string]Result{"capture-write-value": Fail},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				calls.write = func(s hipgo.Stream, _ int, addr uintptr, _ uint64) error {
					return s.Memset(addr, 0, 8)
				}
			}},
		{name: "no thread can be relaxed", settings: hiptest.Settings{Missing: []string{"hipThreadExchangeStreamCaptureMode"}},
			checks: map[string]Result{"capture-beside": Fail}},
		{name: "copies that never end", faults: lost(hiptest.CopyLost, 1), checks: map[string]Result{"queue-cumask": Fail}},
		{name: "one hardware queue and no CU masks", settings: hiptest.Settings{HWQueues: 1, Missing: []string{"hipExtStreamCreateWithCUMask"}},
			checks: map[string]Result{"copy-own-16384": Fail, "copy-own-16385": Fail, "queue-plain": Known}},
		{name: "priorities are ignored", settings: hiptest.Settings{IgnorePriority: true}, checks: map[string]Result{"queue-priority": Known}},
		{name: "a stream cannot be made twice", faults: call("hipStreamCreateWithFlags", 2, 2), checks: map[string]Result{"create-while-parked": Fail}},
		{name: "making a stream waits for parked ones", checks: map[string]Result{"create-while-parked": Known},
			calls: func(_ *testing.T, _ *hiptest.World, calls *runtimeCalls) {
				right := calls.stream
				calls.stream = func(p *probe) (hipgo.Stream, error) {
					for p.used > 0 && p.words.Words().Load(0) == 0 {
						tick := time.NewTimer(time.Millisecond)
						<-tick.C
					}
					return right(p)
				}
			}},
		{name: "no copy fits the stream's queue", settings: hiptest.Settings{BlitBytes: -1},
			checks: map[string]Result{"copy-caller-16384": Known, "copy-caller-16385": Known}},
		{name: "a copy behind a wait blocks its caller", settings: hiptest.Settings{BlitBytes: -1, CopyBlocks: true},
			checks: map[string]Result{"copy-caller-16385": Known, "order": Fail, "acquire-copy-64": Fail}},
	}
}

func TestEachCheckFailsOnARuntimeThatGetsItWrong(t *testing.T) {
	all := map[string]check{}
	for _, c := range checks() {
		all[c.name] = c
	}
	for _, b := range brokenRuntimes() {
		t.Run(strings.ReplaceAll(b.name, " ", "-"), func(t *testing.T) {
			shown := false
			for _, c := range checks() {
				want, asked := b.checks[c.name]
				if !asked {
					continue
				}
				if raced && shown {
					continue // the plain run has them all
				}
				shown = true
				t.Run(c.name, func(t *testing.T) {
					got := onBroken(t, b, c)
					assert.Equal(t, want, got.Result, "%s %v", got.Seen, got.Parked)
					assert.NotEmpty(t, got.Seen)
					if want == Known {
						assert.NotEmpty(t, got.Report)
					}
					t.Log(got.Result, got.Seen, got.Report)
				})
			}
		})
	}
}

func TestThereIsABrokenRuntimeForEveryCheck(t *testing.T) {
	shown := map[string]bool{}
	for _, b := range brokenRuntimes() {
		for name := range b.checks {
			assert.Contains(t, Names(), name)
			shown[name] = true
		}
	}
	for _, name := range Names() {
		assert.True(t, shown[name], "%s has not been seen to fail", name)
	}
}

// onBroken runs one check on a world of its own.
func onBroken(t *testing.T, b broken, c check) Check {
	w := spoilt(t, b.settings)
	calls := realCalls()
	if b.calls != nil {
		b.calls(t, w, &calls)
	}
	for _, f := range b.faults {
		require.NoError(t, w.Fail(f))
	}
	o := quick()
	o.Bound, o.Settle = 150*time.Millisecond, 60*time.Millisecond // what is broken gets time to show
	r := runAll(bounded(t, time.Minute), w.Device(0), o, calls, []check{c})
	require.Len(t, r.Checks, 1)
	return r.Checks[0]
}
