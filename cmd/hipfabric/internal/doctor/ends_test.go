//go:build unix

package doctor

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/bootstrap"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func question(address string) Question {
	return Question{Ends: Ends{Peer: address}, Lanes: []int{1, 2}, Time: 20 * time.Millisecond, Timeout: time.Minute}
}

// serving runs the listening end for the length of a test; ended gives its result.
func serving(t *testing.T, address string, once bool) (stop func(), ended chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Ends{Peer: address, Listen: []string{address}}, once, func(string) {})
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return cancel, ended
}

func TestTheListeningEndEndsWhenItIsToldTo(t *testing.T) {
	address := freeAddress(t)
	stop, ended := serving(t, address, false)
	for range 2 {
		r, err := Ask(t.Context(), question(address), nil)
		require.NoError(t, err)
		require.Empty(t, r.CutShort)
		assert.Len(t, r.Rates, 4)
	}
	stop()
	assert.NoError(t, <-ended)
}

func TestOnceIsOnePeer(t *testing.T) {
	address := freeAddress(t)
	_, ended := serving(t, address, true)
	_, err := Ask(t.Context(), question(address), nil)
	require.NoError(t, err)
	assert.NoError(t, <-ended)
}

func TestTheTimeoutBoundsAllOfIt(t *testing.T) {
	address := freeAddress(t)
	serving(t, address, false)
	q := question(address)
	q.Time, q.Timeout = time.Minute, time.Second
	began := time.Now()
	r, err := Ask(t.Context(), q, nil)
	require.NoError(t, err)
	assert.Equal(t, "not done within 1s", r.CutShort)
	assert.Less(t, time.Since(began), 30*time.Second)
}

func TestAnEndedContextIsNoReport(t *testing.T) {
	for _, there := range []bool{true, false} {
		address := freeAddress(t)
		if there {
			serving(t, address, false)
		}
		ctx, cancel := context.WithCancel(t.Context())
		q := question(address)
		q.Time = 10 * time.Second
		r, err := Ask(ctx, q, func(stage string) {
			if strings.HasPrefix(stage, "round trips") || !there {
				cancel()
			}
		})
		assert.Nil(t, r)
		assert.Error(t, err)
		cancel()
	}
}

// TestAnotherVersionIsNamed plays a listening end whose orders have another version.
func TestAnotherVersionIsNamed(t *testing.T) {
	address := freeAddress(t)
	joined := make(chan error, 1)
	go func() {
		_, err := bootstrap.Join(t.Context(), bootstrap.Config{Group: groupName, World: 2, Master: address, OpenTimeout: time.Minute,
			Settings: []bootstrap.Setting{{Name: "doctor links", Value: "next"}}})
		joined <- err
	}()
	r, err := Ask(t.Context(), question(address), nil)
	require.NoError(t, err)
	assert.ErrorIs(t, <-joined, fabric.ErrMismatch)
	require.NotNil(t, r.NotReached)
	assert.Equal(t, Mismatch, r.NotReached.Kind)
	assert.Contains(t, r.NotReached.Text, `"next"`)
}

// TestTheFarEndRefusesOrdersBeyondItsBounds plays an asking end that wants too much.
func TestTheFarEndRefusesOrdersBeyondItsBounds(t *testing.T) {
	address := freeAddress(t)
	serving(t, address, false)
	for want, o := range map[string]order{
		"9 lanes":       {What: orderRate, Lanes: MaxLanes + 1},
		"-1 lanes":      {What: orderRate, Lanes: -1},
		"at most 1m":    {What: orderRate, Lanes: 1, Ns: int64(MaxTime) + 1},
		"that takes -1": {What: orderTrips, Ns: -1},
		"an unknown":    {What: "dance"},
	} {
		s, err := join(t.Context(), Ends{Peer: address}, nearRank, time.Minute)
		require.NoError(t, err)
		_, err = request(s, o, time.Minute)
		assert.ErrorContains(t, err, want)
		s.close()
	}
}

func TestWhyAConnectionFailsIsToldApart(t *testing.T) {
	for kind, errs := range map[string][]error{
		Refused:     {syscall.ECONNREFUSED, syscall.ECONNRESET},
		Unreachable: {syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EADDRNOTAVAIL, syscall.EINVAL, syscall.EACCES},
		Silent:      {syscall.ETIMEDOUT, context.DeadlineExceeded, os.ErrDeadlineExceeded},
	} {
		for _, err := range errs {
			assert.Equal(t, kind, unanswered(&net.OpError{Op: "dial", Err: err}), "%v", err)
		}
	}
}

func TestANeighbourIsFoundInTheKernelsTable(t *testing.T) {
	table := "IP address       HW type     Flags       HW address            Mask     Device\n" +
		"10.0.1.2         0x1         0x2         02:00:00:00:00:01     *        eth1\n10.0.1.3         0x1         0x0         00:00:00:00:00:00     *        eth1\n"
	assert.Equal(t, "answers", neighbour(table, "10.0.1.2"))
	assert.Equal(t, "silent", neighbour(table, "10.0.1.3"))
	assert.Empty(t, neighbour(table, "10.0.1.4"))
	assert.Empty(t, neighbour("10.0.1.4\n", "10.0.1.4"))
}

func TestWhatThePeerSaysIsOnlyText(t *testing.T) {
	r := healthy()
	r.Far.Name = "box\x1b[2J\r\u009b"
	var b strings.Builder
	require.NoError(t, r.Write(&b))
	assert.Contains(t, b.String(), "box[2J")
	assert.NotContains(t, b.String(), "\x1b")
	assert.NotContains(t, b.String(), "\u009b")
	assert.Contains(t, b.String(), "nothing to mend")
}
