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

func TestACheckThatOutlivesItsBoundFailsWithWhatWasParkedAndIsReleased(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	o := quick()
	o.Bound = 50 * time.Millisecond
	patient := check{"patient", func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		if err := p.park(s, p.word(), 5); err != nil {
			return "", err
		}
		return "all well", s.Synchronize(context.WithoutCancel(p.ctx)) // a call that only a release brings back
	}}
	r := runAll(bounded(t, time.Minute), w.Device(0), o, realCalls(), []check{patient, {"next", eventNeverRecorded}})
	require.Len(t, r.Checks, 2)
	assert.Equal(t, Fail, r.Checks[0].Result)
	assert.Contains(t, r.Checks[0].Seen, "came back once everything parked was released")
	require.Len(t, r.Checks[0].Parked, 1)
	assert.Contains(t, r.Checks[0].Parked[0], "plain stream 1 until word 0 is at least 0x5")
	assert.Equal(t, Pass, r.Checks[1].Result, r.Checks[1].Seen)
	assert.Empty(t, w.Parked())
}

func TestACallThatNeverComesBackEndsTheRunAndPassesNothing(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	o := quick()
	o.Bound = 20 * time.Millisecond
	never, back := make(chan struct{}), make(chan struct{})
	stuck := check{"stuck", func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		defer close(back)
		defer p.within("a copy on " + s.name)()
		<-never
		return "", nil
	}}
	r := runAll(bounded(t, time.Minute), w.Device(0), o, realCalls(), []check{stuck, {"next", eventNeverRecorded}})
	require.Len(t, r.Checks, 2)
	assert.Equal(t, Fail, r.Checks[0].Result)
	assert.Equal(t, []string{"the host in a copy on plain stream 1"}, r.Checks[0].Parked)
	assert.Equal(t, Check{Name: "next", Result: Fail, Seen: "not run: a call of stuck has not come back"}, r.Checks[1])
	close(never)
	<-back
	require.Eventually(t, func() bool { return w.Leaks() == "" }, 10*time.Second, time.Millisecond)
}

func TestAnEndedContextGivesUpTheCheckUnderWay(t *testing.T) {
	w := hiptest.Start(t, hiptest.Settings{})
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := check{"waiting", func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		if err := p.park(s, p.word(), 5); err != nil {
			return "", err
		}
		cancel(errors.New("enough"))
		return "", p.drained(s)
	}}
	o := quick()
	o.Bound = 20 * time.Second
	r := runAll(ctx, w.Device(0), o, realCalls(), []check{waiting, {"next", eventNeverRecorded}})
	require.Len(t, r.Checks, 2)
	assert.Equal(t, Fail, r.Checks[0].Result)
	assert.Less(t, r.Checks[0].Took, o.Bound)
	assert.Contains(t, r.Checks[1].Seen, "enough")
}

func TestNothingRunsBesideStreamsThatNothingReleases(t *testing.T) {
	w := spoilt(t, hiptest.Settings{})
	o := quick()
	o.Bound = 50 * time.Millisecond
	leaves := check{"leaves", func(p *probe) (string, error) {
		s, err := p.plain()
		if err != nil {
			return "", err
		}
		return "all well", p.calls.wait(s.Stream, 64, p.word().addr(), 5, 0, allBits) // nothing remembers to release it
	}}
	r := runAll(bounded(t, time.Minute), w.Device(0), o, realCalls(), []check{leaves, {"next", eventNeverRecorded}})
	require.Len(t, r.Checks, 2)
	assert.Equal(t, Fail, r.Checks[0].Result)
	assert.Contains(t, r.Checks[0].Seen, "all well; and then: plain stream 1 has not ended")
	assert.Equal(t, Fail, r.Checks[1].Result)
	assert.Contains(t, r.Checks[1].Seen, "not run: streams of leaves are still parked")
}
