package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/fabrictest"
	"github.com/hipfabric/hipfabric/fabric/stage"
	"github.com/hipfabric/hipfabric/hipgo/hiptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exercise queues all-gathers on every rank, at the same time, and gives what each rank was told.
func exercise(t *testing.T, ranks []*hipRank, calls, n int) []error {
	t.Helper()
	var buffers []fabric.DevPtr
	for _, r := range ranks {
		both, err := r.alloc(n + n*len(ranks))
		require.NoError(t, err)
		buffers = append(buffers, both)
	}
	return exerciseOn(ranks, buffers, calls, n)
}

func exerciseOn(ranks []*hipRank, buffers []fabric.DevPtr, calls, n int) []error {
	errs := make([]error, len(ranks))
	ended := make(chan struct{})
	for i, r := range ranks {
		in, out := buffers[i], buffers[i]+fabric.DevPtr(n)
		go func() {
			defer func() { ended <- struct{}{} }()
			for range calls {
				if errs[i] = r.AllGather(r.stream(), out, in, n); errs[i] != nil {
					if errors.Is(errs[i], fabric.ErrInvalid) {
						r.Abort(errs[i]) // as an engine would
					}
					break
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := r.Wait(ctx, r.stream()); err != nil {
				errs[i] = err
			}
		}()
	}
	for range ranks {
		<-ended
	}
	return errs
}

// alike says whether all ranks ended by one cause, or all well.
func alike(t *testing.T, ranks []*hipRank, errs []error) (failed bool) {
	t.Helper()
	var first *fabric.Cause
	for i, err := range errs {
		if err == nil {
			err = ranks[i].Check()
		}
		require.NoError(t, fabrictest.WalkError(err))
		var cause *fabric.Cause
		if errors.As(err, &cause) && first == nil {
			first = cause
		}
		errs[i] = err
	}
	for i, err := range errs {
		var cause *fabric.Cause
		if first == nil {
			require.NoError(t, err, "rank %d", i)
			continue
		}
		require.ErrorAs(t, err, &cause, "rank %d", i)
		assert.Equal(t, first.Text, cause.Text, "rank %d", i)
		assert.ErrorIs(t, err, first.Kind)
	}
	for i, r := range ranks {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		require.NoError(t, r.s.Synchronize(ctx), "rank %d's stream is parked", i)
		cancel()
	}
	return first != nil
}

// Every HIP function that calls use fails in turn: all ranks end alike.
func TestAFailureOfEachHIPFunction(t *testing.T) {
	for gate, calls := range map[stage.Gate][]string{
		stage.Words:   {"hipMemcpyAsync", "hipEventRecord", "hipEventQuery", "hipStreamWriteValue64", "hipStreamWaitValue64", "hipStreamIsCapturing"},
		stage.Kernels: {"hipModuleLaunchKernel", "hipStreamIsCapturing", "hipEventRecord", "hipEventQuery"},
	} {
		for _, call := range calls {
			t.Run(fmt.Sprint(gate, " ", call), func(t *testing.T) {
				w := hiptest.Start(t, hiptest.Settings{Devices: 2})
				failed := 0
				for nth := 1; nth <= 9; nth += 2 {
					ranks := openHIP(t, w, 2, stage.Config{Gate: gate, PartBytes: 64, Timeout: 3 * time.Second}, nil)
					require.NoError(t, w.Fail(hiptest.Fault{Call: call, Nth: nth, Code: 999}))
					errs := exercise(t, ranks, 4, 200)
					if alike(t, ranks, errs) {
						failed++
						assert.ErrorContains(t, errs[0], call)
					}
					done(t, ranks)
				}
				assert.NotZero(t, failed)
			})
		}
	}
}

// A copy that never ends is waited for until the device lets it land; until then nothing of it is freed.
func TestALateCopyOnHIP(t *testing.T) {
	for nth := 1; nth <= 4; nth++ {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			w := hiptest.Start(t, hiptest.Settings{Devices: 2})
			ranks := openHIP(t, w, 2, stage.Config{Timeout: time.Second}, nil)
			require.NoError(t, w.Fail(hiptest.Fault{Copy: hiptest.CopyLate, Nth: nth}))
			errs := exercise(t, ranks, 2, 100)
			require.True(t, alike(t, ranks, errs))
			require.ErrorIs(t, errs[0], fabric.ErrDevice)
			require.ErrorContains(t, errs[0], "may still be written until the device has synchronised")
			w.Land()
			done(t, ranks)
		})
	}
}

// A lost device gives every call an error, those that free too: the ranks end alike and within their bounds.
func TestALostDeviceEndsAllRanksAlike(t *testing.T) {
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		t.Run(gate.String(), func(t *testing.T) {
			w, err := hiptest.New(hiptest.Settings{Devices: 2})
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			require.NoError(t, err)
			ranks := openHIP(t, w, 2, stage.Config{Gate: gate, Timeout: time.Second}, nil)
			var buffers []fabric.DevPtr
			for _, r := range ranks {
				p, err := r.alloc(300)
				require.NoError(t, err)
				buffers = append(buffers, p)
			}
			require.NoError(t, w.Fail(hiptest.Fault{Lost: true, Device: 1}))
			errs := exerciseOn(ranks, buffers, 2, 100)
			var first *fabric.Cause
			for i, err := range errs {
				require.Error(t, err, "rank %d", i)
				var cause *fabric.Cause
				require.ErrorAs(t, err, &cause)
				if first != nil {
					assert.Equal(t, first.Text, cause.Text)
				}
				first = cause
			}
			began := time.Now()
			for _, r := range ranks {
				_ = r.Close()
			}
			assert.Less(t, time.Since(began), 20*time.Second)
			require.NoError(t, w.Close())
		})
	}
}

// What is opened is closed: the device's books are empty after each of a thousand rounds.
func TestOpeningAndClosingLeaksNothing(t *testing.T) {
	rounds := 1000
	if testing.Short() || underRace {
		rounds = 50
	}
	w := hiptest.Start(t, hiptest.Settings{Devices: 2})
	for _, gate := range []stage.Gate{stage.Words, stage.Kernels} {
		for i := range rounds / 2 {
			ranks := openHIP(t, w, 2, stage.Config{Gate: gate, PartBytes: 4096}, nil)
			if i%10 == 0 {
				for _, err := range exercise(t, ranks, 1, 10) {
					require.NoError(t, err)
				}
			}
			done(t, ranks)
			require.Empty(t, w.Leaks())
		}
	}
}
