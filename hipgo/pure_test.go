package hipgo

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorsNameCallCodeAndLibrary(t *testing.T) {
	r := &Runtime{library: "/opt/rocm/lib/libamdhip64.so.7"}
	require.NoError(t, r.check("hipMalloc", 0))
	for code, want := range map[int]string{
		2:    "hipMalloc: hipErrorOutOfMemory (2), /opt/rocm/lib/libamdhip64.so.7",
		900:  "hipMalloc: hipErrorStreamCaptureUnsupported (900), /opt/rocm/lib/libamdhip64.so.7",
		4711: "hipMalloc: hipError 4711 (4711), /opt/rocm/lib/libamdhip64.so.7",
	} {
		err := r.check("hipMalloc", code)
		assert.EqualError(t, err, want)
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, &Error{Call: "hipMalloc", Code: code, Library: r.library}, e)
	}
}

func TestCodesThatMeanUnsupported(t *testing.T) {
	for code, want := range map[int][2]bool{100: {true, true}, 101: {true, true}, 801: {false, true}, 2: {}, 600: {}, 209: {}} {
		err := fmt.Errorf("wrapped: %w", &Error{Call: "hipInit", Code: code})
		assert.Equal(t, want[0], errors.Is(err, ErrNoGPU), code)
		assert.Equal(t, want[1], errors.Is(err, errors.ErrUnsupported), code)
	}
	assert.ErrorIs(t, ErrNoGPU, errors.ErrUnsupported)
	assert.ErrorIs(t, &UnsupportedError{}, errors.ErrUnsupported)
}

func TestMemoryTypesWereNumberedAnewAtSix(t *testing.T) {
	for major, want := range map[int]map[int]MemoryKind{
		5: {0: MemoryHost, 1: MemoryDevice, 2: MemoryArray, 3: MemoryUnified, 4: MemoryManaged, 9: MemoryUnknown},
		6: {0: MemoryUnknown, 1: MemoryHost, 2: MemoryDevice, 3: MemoryManaged, 10: MemoryArray, 11: MemoryUnified, 9: MemoryUnknown},
	} {
		for number, kind := range want {
			assert.Equal(t, kind, kindOf(major, number), "HIP %d, type %d", major, number)
			assert.Equal(t, kindOf(major, number), kindOf(major+2*(major/6), number))
		}
	}
}

func TestPCIIDsAreCompared(t *testing.T) {
	for _, id := range []string{"0000:c5:00.0", "0000:C5:00.0", "c5:00.0", " c5:00 "} {
		assert.Equal(t, "0000:c5:00.0", fullPCI(id), id)
	}
	assert.NotEqual(t, fullPCI("0001:c5:00.0"), fullPCI("c5:00.0"))
}

func TestAFullMaskHasEveryUnit(t *testing.T) {
	for units, want := range map[int][]uint32{
		0: {^uint32(0)}, 1: {1}, 20: {1<<20 - 1}, 32: {^uint32(0)}, 40: {^uint32(0), 0xff}, 64: {^uint32(0), ^uint32(0)},
	} {
		assert.Equal(t, want, fullMask(units), units)
	}
}

func TestAZeroHandleIsAnError(t *testing.T) {
	var s Stream
	var e Event
	_, queried := s.Query()
	_, status := s.Capturing()
	_, captured := s.EndCapture()
	_, passed := e.Query()
	_, since := e.Since(e)
	for what, err := range map[string]error{
		"copy": s.Copy(8, 16, 8, CopyDefault), "memset": s.Memset(8, 0, 8), "wait64": s.WaitValue64(8, 0, ConditionGte, 0),
		"wait32": s.WaitValue32(8, 0, ConditionGte, 0), "write64": s.WriteValue64(8, 1), "write32": s.WriteValue32(8, 1),
		"write+wait": s.WriteWait(8, 1, 16, 1), "wait event": s.WaitEvent(e), "query": queried, "status": status,
		"begin": s.BeginCapture(CaptureGlobal), "end": captured, "launch": s.Launch(Function{}, [3]int{}, [3]int{}, 0),
		"record": e.Record(s), "passed": passed, "since": since, "synchronize": s.Synchronize(t.Context()),
	} {
		assert.ErrorContains(t, err, "a zero ", what)
	}
	assert.NoError(t, s.Close())
	assert.NoError(t, e.Close())
}

func TestAClosedHandleIsAnErrorThatNamesIt(t *testing.T) {
	over := &life{}
	over.over.Store(true)
	d := &Device{rt: &Runtime{}}
	s, e := Stream{d: d, own: over}, Event{d: d, own: over}
	_, queried := s.Query()
	_, passed := e.Query()
	for want, errs := range map[string][]error{
		"stream": {s.Copy(8, 16, 8, CopyDefault), s.WriteWait(8, 1, 16, 1), queried},
		"event":  {e.Record(d.WrapStream(1)), d.WrapStream(1).WaitEvent(e), passed},
	} {
		for _, err := range errs {
			assert.ErrorIs(t, err, os.ErrClosed)
			assert.ErrorContains(t, err, want)
		}
	}
}
