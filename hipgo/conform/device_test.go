package conform

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

// quick bounds are long for the software device, whose steps take microseconds, and short for a test.
func quick() Options { return Options{Bound: 400 * time.Millisecond, Settle: 4 * time.Millisecond} }

func bounded(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// spoilt is a world that a test leaves with parked streams: nobody looks for leaks.
func spoilt(t *testing.T, s hiptest.Settings) *hiptest.World {
	w, err := hiptest.New(s)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func results(r Report) map[string]Check {
	all := map[string]Check{}
	for _, c := range r.Checks {
		all[c.Name] = c
	}
	return all
}

// with runs every check against a profile, and says which do not pass.
func with(t *testing.T, s hiptest.Settings) map[string]Check {
	w := hiptest.Start(t, s)
	o := quick()
	o.Bound = time.Second // a busy machine is no failure
	r := Run(bounded(t, 5*time.Minute), w.Device(0), o)
	for _, c := range r.Checks {
		assert.NotEqual(t, Fail, c.Result, "%+v", c)
	}
	require.Len(t, r.Checks, len(Names()))
	if t.Failed() {
		t.Log("\n" + r.String())
	}
	return results(r)
}

func TestTheSoftwareDevicePassesButForWhatIsKnownOfRuntimesBeforeJuly2026(t *testing.T) {
	got := with(t, hiptest.Settings{})
	for name, c := range got {
		want := Pass
		switch name {
		case "capture-write-value", "capture-wait-value", "queue-plain", "copy-caller-16385":
			want = Known
		}
		assert.Equal(t, want, c.Result, "%s: %s", name, c.Seen)
	}
	assert.Contains(t, got["copy-caller-16385"].Seen, "host stores ended it")
}

func TestALateRuntimeRecordsValuesAndIgnoresPriorities(t *testing.T) {
	got := with(t, hiptest.Settings{Capture: hiptest.CaptureRecords, IgnorePriority: true, HWQueues: 4})
	assert.Equal(t, Known, got["queue-priority"].Result)
	assert.Equal(t, reportPriority, got["queue-priority"].Report)
	assert.Contains(t, got["capture-write-value"].Seen, "runs in each replay")
	assert.Contains(t, got["capture-wait-value"].Seen, "holds in the replay")
}

func TestAnOldRuntimeCopiesNothingOnTheStreamsQueue(t *testing.T) {
	got := with(t, hiptest.Settings{HIP: "6.3.0", HWQueues: 16})
	assert.Equal(t, Known, got["copy-caller-16384"].Result)
	assert.Equal(t, Known, got["copy-caller-16385"].Result)
	assert.Equal(t, Pass, got["queue-plain"].Result, "there is a queue for every stream")
}

func TestAnIntegratedDeviceOnWhichOnlyHostStoresReleaseAndValuesAreRefusedInACapture(t *testing.T) {
	got := with(t, hiptest.Settings{Integrated: true, HostReleases: true, Capture: hiptest.CaptureRefuses})
	assert.Equal(t, Known, got["release-stream-write"].Result)
	assert.Equal(t, reportStreamWrite, got["release-stream-write"].Report)
	assert.Contains(t, got["capture-write-value"].Seen, "refused")
	assert.Contains(t, got["capture-wait-value"].Seen, "refused")
}

func TestADeviceThatCannotWaitIsUnsupportedByName(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{NoStreamWait: true, Missing: []string{"hipExtStreamCreateWithCUMask"}})
	r := Run(bounded(t, 2*time.Minute), w.Device(0), quick())
	got := results(r)
	for _, name := range []string{"self-test", "order", "wait64-gte", "wait32-mask", "write-wait", "release-host-store", "queue-cumask", "copy-own-16385"} {
		assert.Equal(t, Unsupported, got[name].Result, "%s: %s", name, got[name].Seen)
	}
	assert.Contains(t, got["queue-cumask"].Seen, "hipExtStreamCreateWithCUMask")
	assert.Equal(t, Pass, got["pointer-device"].Result)
	assert.Zero(t, r.Count(Fail), "\n%s", r)
}

func TestNothingIsLeftAfterARun(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	Run(bounded(t, 5*time.Minute), w.Device(0), quick())
	assert.Empty(t, w.Leaks())
	assert.Empty(t, w.Reports())
}

func TestOnlyWhatWasAskedForRuns(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	o := quick()
	o.Only = []string{"pointer-", "order"}
	var names []string
	for _, c := range Run(bounded(t, time.Minute), w.Device(0), o).Checks {
		names = append(names, c.Name)
	}
	assert.Equal(t, []string{"order", "pointer-device", "pointer-host", "pointer-foreign"}, names)
}

func TestARunWhoseContextEndedPassesNothing(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := Run(ctx, w.Device(0), quick())
	assert.Equal(t, len(Names()), r.Count(Fail))
	assert.Contains(t, r.Checks[0].Seen, "not run")
}
