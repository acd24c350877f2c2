package hipgo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/hipgo"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
)

func TestASelfTestPassesAndLeavesNothing(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	require.NoError(t, w.Device(1).SelfTest(within(t, bound)))
	assert.Empty(t, w.Leaks())
	w = nextWorld(t, w, hiptest.Settings{HostReleases: true})
	require.NoError(t, w.Device(0).SelfTest(within(t, bound)), "only the host releases, and that will do")
}

func nextWorld(t *testing.T, w *hiptest.World, s hiptest.Settings) *hiptest.World {
	t.Helper()
	require.NoError(t, w.Close())
	return hiptest.Start(t, s)
}

func TestASelfTestRefusesByName(t *testing.T) {
	for name, c := range map[string]struct {
		settings hiptest.Settings
		fault    hiptest.Fault
		says     string
	}{
		"the attribute is 0":       {settings: hiptest.Settings{NoStreamWait: true}, says: "streams cannot wait on values"},
		"the attribute is unknown": {settings: hiptest.Settings{StreamWaitError: true}, says: "streams cannot wait on values"},
		"no pinned memory":         {fault: hiptest.Fault{Call: "hipHostMalloc", Code: 2}, says: "no pinned memory"},
		"no stream":                {fault: hiptest.Fault{Call: "hipStreamCreateWithFlags", Code: 2}, says: "no stream"},
		"no wait":                  {fault: hiptest.Fault{Call: "hipStreamWaitValue64", Code: 801}, says: "a wait on a word in pinned memory was refused"},
		"no write":                 {fault: hiptest.Fault{Call: "hipStreamWriteValue64", Code: 801}, says: "a write of a word in pinned memory was refused"},
		"a query fails":            {fault: hiptest.Fault{Call: "hipStreamQuery", Code: 719}, says: "did not wait"},
	} {
		t.Run(name, func(t *testing.T) {
			w := hiptest.Start(t, c.settings)
			if c.fault.Call != "" {
				require.NoError(t, w.Fail(c.fault))
			}
			err := w.Device(0).SelfTest(within(t, bound))
			var refusal *hipgo.UnsupportedError
			require.ErrorAs(t, err, &refusal)
			assert.ErrorIs(t, err, errors.ErrUnsupported)
			for _, fact := range []string{c.says, w.Device(0).PCI(), "HIP 7.15.26333", w.Runtime().Library(), w.Device(0).Name()} {
				assert.ErrorContains(t, err, fact)
			}
			assert.Empty(t, w.Leaks())
		})
	}
}

func TestASelfTestOfAHungQueueEnds(t *testing.T) {
	w, err := hiptest.New(hiptest.Settings{HWQueues: 1})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer w.Close()
	s, err := w.Device(0).NewStream(hipgo.StreamNonBlocking)
	require.NoError(t, err)
	require.NoError(t, w.Queue(s).Hang())
	err = w.Device(0).SelfTest(within(t, 50*time.Millisecond))
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "a store of the CPU did not release a waiting stream")
	assert.ErrorContains(t, err, "left behind")
}

func TestASelfTestThatIsCancelledBlamesNoDevice(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := w.Device(0).SelfTest(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, errors.ErrUnsupported)
}

func TestASelfTestSeesAWaitThatDoesNotHoldAndWordsThatAreNotShared(t *testing.T) {
	b := start(t, hiptest.Settings{})
	var err error
	for try := 0; err == nil && try < 100; try++ { // on a busy machine the device may look parked for as long as the test looks
		b.words.Store(0, 5) // the wait is met before it begins
		err = b.d.Exercise(within(t, bound), b.s, b.words)
	}
	require.ErrorContains(t, err, "a stream did not wait")
	b.words.Store(0, 0)
	elsewhere := hipgo.WordsAt(make([]uint64, 2), b.words.Addr(0))
	assert.ErrorContains(t, b.d.Exercise(within(t, 30*time.Millisecond), b.s, elsewhere), "a store of the CPU did not release")
	b.words.Store(0, 1)
	b.drained(t)
}
