package bootstrap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestMessagesOfASenderArriveInOrder(t *testing.T) {
	const world, count = 4, 300
	ctx := testContext(t)
	s := group(t, configs(t, world))
	each(2*world, func(i int) {
		r := i / 2
		if i%2 == 0 {
			for n := range count {
				msg := binary.LittleEndian.AppendUint32(nil, uint32(n))
				var err error
				if n%3 == 0 {
					err = s[r].Control().Broadcast(ctx, msg)
				} else {
					for to := range world {
						if to != r {
							err = errors.Join(err, s[r].Control().Send(ctx, to, msg))
						}
					}
				}
				if !assert.NoError(t, err) {
					return
				}
			}
			return
		}
		var next [world]uint32
		buf := make([]byte, 16)
		for range count * (world - 1) {
			n, from, err := s[r].Control().Recv(ctx, buf)
			if !assert.NoError(t, err, "rank %d", r) || !assert.Equal(t, 4, n) ||
				!assert.Equal(t, next[from], binary.LittleEndian.Uint32(buf), "rank %d from %d", r, from) {
				return
			}
			next[from]++
		}
	})
}

func TestEmptyAndLargestMessagesArrive(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	large := make([]byte, MaxMessage)
	large[MaxMessage-1] = 9
	require.NoError(t, s[1].Control().Send(ctx, 2, nil))
	require.NoError(t, s[1].Control().Send(ctx, 2, large))
	large[MaxMessage-1] = 0 // Send has copied it
	buf := make([]byte, MaxMessage)
	n, from, err := s[2].Control().Recv(ctx, buf)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1}, []int{n, from})
	n, _, err = s[2].Control().Recv(ctx, buf)
	require.NoError(t, err)
	assert.Equal(t, MaxMessage, n)
	assert.Equal(t, byte(9), buf[MaxMessage-1])
}

func TestBadSendsAreRefusedByName(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	for text, err := range map[string]error{
		"the message has 262145 bytes; at most 262144": s[0].Control().Send(ctx, 1, make([]byte, MaxMessage+1)),
		"to is 0; another rank of 0 to 1":              s[0].Control().Send(ctx, 0, nil),
		"to is 2;":                                     s[0].Control().Send(ctx, 2, nil),
		"to is -1;":                                    s[0].Control().Send(ctx, -1, nil),
		"at most 262144":                               s[0].Control().Broadcast(ctx, make([]byte, MaxMessage+1)),
	} {
		assert.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, text)
	}
}

func TestAMessageTooLongForTheBufferIsDroppedAndReported(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	require.NoError(t, s[0].Control().Send(ctx, 1, make([]byte, 300)))
	require.NoError(t, s[0].Control().Send(ctx, 1, []byte("next")))
	buf := make([]byte, 100)
	n, from, err := s[1].Control().Recv(ctx, buf)
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "300 bytes from rank 0 is longer than the buffer's 100")
	assert.Equal(t, []int{0, 0}, []int{n, from})
	n, _, err = s[1].Control().Recv(ctx, buf)
	require.NoError(t, err)
	assert.Equal(t, "next", string(buf[:n]))
}

func TestASenderWithoutCreditWaitsForItsContext(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	for _, pair := range [][2]int{{0, 1}, {1, 0}, {1, 2}} {
		from, to := s[pair[0]].Control(), s[pair[1]].Control()
		msg := make([]byte, 100<<10)
		sent := 0
		for {
			brief, cancel := context.WithTimeout(ctx, 100*ms)
			err := from.Send(brief, pair[1], msg)
			cancel()
			if err != nil {
				assert.Equal(t, context.DeadlineExceeded, err)
				break
			}
			sent++
		}
		assert.Equal(t, window/cost(len(msg)), sent, "1 MiB is on its way")
		done := make(chan error)
		go func() { done <- from.Send(ctx, pair[1], msg) }()
		for range sent + 1 {
			_, _, err := to.Recv(ctx, make([]byte, len(msg)))
			require.NoError(t, err)
		}
		assert.NoError(t, <-done, "taking messages lets the sender go on")
	}
	assert.NoError(t, s[0].Cause())
}

func TestEmptyMessagesAreBoundedToo(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	brief, cancel := context.WithTimeout(ctx, 500*ms)
	defer cancel()
	sent := 0
	for s[1].Control().Send(brief, 0, nil) == nil {
		sent++
	}
	assert.LessOrEqual(t, sent, 16<<10, "1 MiB of messages that cost 64 each")
}

func TestASenderBeyondItsCreditIsCutOff(t *testing.T) {
	s := group(t, configs(t, 2))
	require.True(t, s[1].post(func() {
		for range 5 {
			s[1].loop.message(append([]byte{0, 0}, make([]byte, MaxMessage)...))
		}
	}))
	_ = causes(t, s[0])
	assert.ErrorContains(t, s[0].Cause(), "without credit")
}

func TestFollowersIdleAndEndWithTheGroup(t *testing.T) {
	s := group(t, configs(t, 3))
	errs := make(chan error, 2)
	for r := 1; r < 3; r++ {
		go func() {
			_, _, err := s[r].Control().Recv(context.Background(), nil)
			errs <- err
		}()
	}
	pause(testContext(t), 300*ms)
	assert.Empty(t, errs)
	_ = s[0].Report(errors.New("enough"))
	for range 2 {
		err := <-errs
		assert.ErrorIs(t, err, fabric.ErrAborted)
		assert.ErrorContains(t, err, "enough")
	}
}

func TestWaitsEndByCloseAndByContext(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err := s[0].Control().Recv(cancelled, nil)
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, context.Canceled, s[0].Control().Barrier(cancelled))
	assert.NoError(t, s[0].Cause(), "a context's end leaves the group alone")

	waits := map[string]func() error{
		"recv":       func() error { _, _, err := s[0].Control().Recv(ctx, nil); return err },
		"barrier":    func() error { return s[0].Control().Barrier(ctx) },
		"all-gather": func() error { _, err := s[0].AllGather(ctx, nil); return err },
		"accept":     func() error { _, err := s[0].Accept(ctx, 1, fabric.Lane{Channel: "host"}); return err },
	}
	errs := make(chan error, len(waits))
	for _, wait := range waits {
		go func() { errs <- wait() }()
	}
	pause(ctx, 50*ms)
	require.NoError(t, s[0].Close(ctx))
	for range waits {
		err := <-errs
		assert.ErrorIs(t, err, fabric.ErrClosed)
		var op *fabric.OpError
		assert.ErrorAs(t, err, &op)
	}
	for name, again := range waits {
		assert.ErrorIs(t, again(), fabric.ErrClosed, name)
	}
}

func TestABarrierMeetsUnevenRanks(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	for round := range 20 {
		entered := make(chan int, 3)
		each(3, func(r int) {
			pause(ctx, time.Duration((r+round)%3)*2*ms)
			entered <- r
			assert.NoError(t, s[r].Control().Barrier(ctx))
			assert.Len(t, entered, 3, "rank %d came out before all were in", r)
		})
	}
}

func TestABarrierEndedByItsContextIsResumed(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	for range 3 { // three calls, one entry
		brief, cancel := context.WithTimeout(ctx, 20*ms)
		assert.Equal(t, context.DeadlineExceeded, s[1].Control().Barrier(brief))
		cancel()
	}
	// The others need no more than that one entry.
	each(2, func(i int) { assert.NoError(t, s[2*i].Control().Barrier(ctx)) })
	assert.NoError(t, s[1].Control().Barrier(ctx), "resumed")
	each(3, func(r int) { assert.NoError(t, s[r].Control().Barrier(ctx), "and in step again") })
}

func TestWaitingForARankThatHasLeftFailsTheGroup(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, s *Session) error{
		"barrier":    func(ctx context.Context, s *Session) error { return s.Control().Barrier(ctx) },
		"all-gather": func(ctx context.Context, s *Session) error { _, err := s.AllGather(ctx, nil); return err },
		"send":       func(ctx context.Context, s *Session) error { return s.Control().Send(ctx, 2, nil) },
		"accept": func(ctx context.Context, s *Session) error {
			_, err := s.Accept(ctx, 2, fabric.Lane{Channel: "host"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s := group(t, configs(t, 3))
			require.NoError(t, s[2].Close(ctx))
			require.Eventually(t, func() bool { return s[1].Status()[2].Left }, patience, ms)
			err := wait(ctx, s[1])
			assert.ErrorIs(t, err, fabric.ErrPeerFailed)
			assert.ErrorContains(t, err, "rank 2 left the group")
			theCause(t, peerFailed(2, 1, "rank 2 left the group"), s[:2]...)
		})
	}
}

func TestNothingReachesAnybodyOnceRank0HasLeft(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, s *Session) error{
		"send": func(ctx context.Context, s *Session) error { return s.Control().Send(ctx, 2, nil) },
		"dial": func(ctx context.Context, s *Session) error {
			_, err := s.Dial(ctx, 0, fabric.Lane{Channel: "host"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s := group(t, configs(t, 3))
			require.NoError(t, s[0].Close(ctx))
			require.Eventually(t, func() bool { return s[1].Status()[0].Left }, patience, ms)
			assert.ErrorContains(t, wait(ctx, s[1]), "rank 0 left the group")
		})
	}
}

func TestMessagesBeforeAGoodbyeArrive(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	const n = 100
	for i := range n {
		require.NoError(t, s[1].Control().Send(ctx, 2, fmt.Append(nil, i)))
	}
	require.NoError(t, s[1].Close(ctx))
	buf := make([]byte, 16)
	for i := range n {
		got, from, err := s[2].Control().Recv(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d from 1", i), fmt.Sprintf("%s from %d", buf[:got], from))
	}
	require.NoError(t, s[0].Close(ctx))
	_, _, err := s[2].Control().Recv(ctx, buf)
	assert.ErrorContains(t, err, "rank 0 left the group", "nobody can send any more")
}

func TestAlone(t *testing.T) {
	ctx := testContext(t)
	s := group(t, []Config{{World: 1}})[0]
	assert.NoError(t, s.Control().Barrier(ctx))
	assert.NoError(t, s.Control().Broadcast(ctx, []byte("x")))
	assert.NoError(t, s.Vote(ctx, "x", nil))
	assert.NoError(t, s.Compare(ctx, []Setting{{"a", "b"}}))
	assert.True(t, s.Loopback())
	assert.Equal(t, 1, s.LocalRanks())
	assert.Len(t, s.Status(), 1)
	assert.NotZero(t, s.ID())
	reports := make(chan []RankReport, 1)
	s.OnReports(func(r []RankReport) { reports <- r })
	assert.ErrorIs(t, s.Report(&fabric.Cause{Kind: fabric.ErrTimeout, Peer: -1, Text: "x"}), fabric.ErrTimeout)
	assert.Len(t, <-reports, 1)
	<-s.Done()
	assert.NoError(t, s.Close(ctx))
}

func TestABarrierWhoseContextHadEndedEntersNothing(t *testing.T) {
	s := group(t, configs(t, 2))
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	for range 50 {
		require.ErrorIs(t, s[0].Control().Barrier(ended), context.Canceled)
	}
	brief, done := context.WithTimeout(testContext(t), 30*ms)
	defer done()
	assert.ErrorIs(t, s[1].Control().Barrier(brief), context.DeadlineExceeded)
}
