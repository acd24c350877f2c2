package bootstrap

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hipfabric/hipfabric/fabric"
)

// descriptors counts this process's open files; -1 where the system does not say.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(open)
}

func TestOpenAndCloseLeaveNothingBehind(t *testing.T) {
	ctx := testContext(t)
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	var before int
	for i := range rounds {
		if i == 5 {
			before = descriptors()
		}
		s, errs := joinAll(ctx, configs(t, 2))
		require.NoError(t, errors.Join(errs...))
		switch i % 4 {
		case 1:
			_ = s[1].Report(errors.New("enough"))
		case 2:
			kill(s[i/4%2])
		case 3:
			c, err := s[1].Dial(ctx, 0, fabric.Lane{Channel: "host"}) // parked, and never asked for
			require.NoError(t, err)
			c.Close()
		}
		closeAll(s)
	}
	assert.LessOrEqual(t, descriptors(), before, "file descriptors")
	goleak.VerifyNone(t)
}

func TestAFailedJoinLeavesNothingBehind(t *testing.T) {
	before := descriptors()
	for name, fail := range map[string]func(t *testing.T){
		"nobody comes": func(t *testing.T) {
			c := configs(t, 3)[0]
			c.OpenTimeout = 50 * ms
			_, err := Join(testContext(t), c)
			assert.ErrorIs(t, err, fabric.ErrTimeout)
		},
		"no master": func(t *testing.T) {
			c := configs(t, 3)[1]
			c.OpenTimeout = 50 * ms
			_, err := Join(testContext(t), c)
			assert.ErrorIs(t, err, fabric.ErrTimeout)
		},
		"some come": func(t *testing.T) {
			all := configs(t, 4)
			ctx, cancel := context.WithTimeout(testContext(t), 100*ms)
			defer cancel()
			_, errs := joinAll(ctx, all[:3])
			for _, err := range errs {
				assert.Error(t, err)
			}
		},
		"mismatch": func(t *testing.T) {
			all := configs(t, 3)
			all[1].Group = "other"
			_, errs := joinAll(testContext(t), all)
			for _, err := range errs {
				assert.ErrorIs(t, err, fabric.ErrMismatch)
			}
		},
		"wrong secret": func(t *testing.T) {
			all := configs(t, 2)
			all[0].OpenTimeout = 100 * ms
			all[1].Secret = []byte("another secret of enough bytes")
			_, errs := joinAll(testContext(t), all)
			assert.ErrorIs(t, errs[0], fabric.ErrTimeout)
			assert.ErrorIs(t, errs[1], fabric.ErrUnauthorized)
		},
		"cancelled": func(t *testing.T) {
			ctx, cancel := context.WithCancel(testContext(t))
			time.AfterFunc(50*ms, cancel)
			_, errs := joinAll(ctx, configs(t, 4)[:3])
			for _, err := range errs {
				assert.ErrorIs(t, err, fabric.ErrAborted)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fail(t)
			goleak.VerifyNone(t, goleak.IgnoreTopFunction("testing.(*T).Run"))
			assert.LessOrEqual(t, descriptors(), before+1, "file descriptors") // the netpoller's, once
		})
	}
}

func TestCloseIsIdempotentAndBoundedByItsContext(t *testing.T) {
	s := group(t, configs(t, 2))
	freeze(t, s[0])
	began := time.Now()
	require.NoError(t, s[1].Close(testContext(t)), "a peer that takes nothing does not hold it")
	assert.Less(t, time.Since(began), 20*goodbyeWait)
	require.NoError(t, s[1].Close(testContext(t)))
	<-s[1].Done()
	assert.NoError(t, s[1].Cause())
	assert.ErrorIs(t, s[1].Control().Send(testContext(t), 0, nil), fabric.ErrClosed)
	mine := s[1].Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: 0, Text: "late"})
	assert.ErrorIs(t, mine, fabric.ErrTimeout, "after Close only this rank is asked")
}

func TestARankThatFailsAndClosesAtOnceHasToldTheOthers(t *testing.T) {
	for range 20 {
		s := group(t, configs(t, 3))
		go func() { _ = s[2].Report(errors.New("enough")) }()
		<-s[2].Done()
		closeAll(s[2:])
		theCause(t, fabric.Cause{Kind: fabric.ErrAborted, Peer: -1, From: 2, Text: "enough"}, s[:2]...)
	}
}

func TestACloseWithoutTimeStillSaysGoodbye(t *testing.T) {
	s := group(t, quick(configs(t, 3)))
	over, cancel := context.WithCancel(testContext(t))
	cancel()
	require.NoError(t, s[2].Close(over))
	require.Eventually(t, func() bool { return s[0].Status()[2].Left && s[1].Status()[2].Left }, patience, ms)
	assert.NoError(t, s[0].Cause())
	assert.NoError(t, s[1].Cause())
}
