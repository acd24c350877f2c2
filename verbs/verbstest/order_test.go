package verbstest_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs"
	"github.com/hipfabric/hipfabric/verbs/internal/conform"
	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// pair is two ends on hosts 0 and 1 that are connected.
func pair(t testing.TB, f *verbstest.Fabric, q verbs.QPConfig, k verbs.Connection) (a, b *conform.End) {
	t.Helper()
	a, b = end(t, open(t, f, 0, 0), q), end(t, open(t, f, 1, 0), q)
	require.NoError(t, conform.Connect(a, b, k))
	return a, b
}

func post(t testing.TB, e *conform.End, chain ...verbs.SendWR) {
	t.Helper()
	_, err := e.QP.PostSend(chain...)
	require.NoError(t, err)
}

func statuses(t testing.TB, e *conform.End, want ...verbs.Status) {
	t.Helper()
	got, err := e.Poll(len(want))
	require.NoError(t, err)
	for i := range got {
		assert.Equal(t, want[i], got[i].Status, i)
	}
}

// ran is what was seen of a payload of 4 KiB and its flag, posted as two writes: after each step the payload's pieces that are there.
func ran(t *testing.T, seed uint64, change func(f *verbstest.Fabric), access verbs.Access) (trace []string, early, scrambled bool) {
	t.Helper()
	f := fabric(t, seed, verbstest.Switch(2, 1))
	change(f)
	a := end(t, open(t, f, 0, 0), verbs.QPConfig{})
	b, err := conform.NewEnd(within(t), open(t, f, 1, 0), verbs.QPConfig{}, access)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	require.NoError(t, conform.Connect(a, b, verbs.Connection{MTU: 256}))
	f.Hold()
	for i := range a.Mem.Bytes()[:8192] {
		a.Mem.Bytes()[i] = 1
	}
	post(t, a, a.Write(b, 0, 0, 4096), a.Write(b, 4096, 8192, 8))
	for f.Step() {
		there := make([]byte, 16)
		for i := range there {
			there[i] = b.Mem.Bytes()[i*256]
		}
		flag := b.Mem.Bytes()[8192] == 1
		trace = append(trace, fmt.Sprintf("%v %t", there, flag))
		n := bytes.Count(there, []byte{1})
		early = early || flag && n < 16
		scrambled = scrambled || n < 16 && slices.Contains(there[n:], 1)
	}
	statuses(t, a, verbs.StatusSuccess, verbs.StatusSuccess)
	return trace, early, scrambled
}

func TestOrderOfBytes(t *testing.T) {
	none := func(*verbstest.Fabric) {}
	free := func(f *verbstest.Fabric) { f.OutOfOrder(true) }
	for seed := range uint64(20) {
		_, early, scrambled := ran(t, seed, none, conform.All)
		assert.False(t, early || scrambled, "in order")
		first, _, scrambled := ran(t, seed, free, conform.All)
		assert.True(t, scrambled, "out of order")
		again, _, _ := ran(t, seed, free, conform.All)
		assert.Equal(t, first, again, "the same seed, the same order")
		other, _, _ := ran(t, seed+100, free, conform.All)
		assert.NotEqual(t, first, other)
		_, _, scrambled = ran(t, seed, none, conform.All|verbs.AccessRelaxedOrdering)
		assert.True(t, scrambled, "relaxed ordering")
	}
}

func TestAFlagMayComeBeforeItsPayload(t *testing.T) {
	early := 0
	for seed := range uint64(20) {
		if _, e, _ := ran(t, seed, func(f *verbstest.Fabric) { f.OutOfOrder(true) }, conform.All); e {
			early++
		}
	}
	assert.Greater(t, early, 10, "of 20 seeds")
}

// A flag in memory without relaxed ordering stays behind its payload in memory with it.
func TestAStrictFlagStaysBehindARelaxedPayload(t *testing.T) {
	for seed := range uint64(20) {
		f := fabric(t, seed, verbstest.Switch(2, 1))
		a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{MTU: 256})
		relaxed, err := b.PD.Register(b.Mem, conform.All|verbs.AccessRelaxedOrdering)
		require.NoError(t, err)
		f.Hold()
		copy(a.Mem.Bytes(), bytes.Repeat([]byte{1}, 4104))
		payload := a.Write(b, 0, 0, 4096)
		payload.RKey = relaxed.RKey()
		post(t, a, payload, a.Write(b, 4096, 8192, 8))
		for f.Step() {
			if b.Mem.Bytes()[8192] == 1 {
				assert.Equal(t, bytes.Repeat([]byte{1}, 4096), b.Mem.Bytes()[:4096])
			}
		}
		assert.Equal(t, byte(1), b.Mem.Bytes()[8192])
		require.NoError(t, relaxed.Close())
	}
}

func TestNothingIsOrderedBetweenQueuePairs(t *testing.T) {
	swapped := 0
	for seed := range uint64(20) {
		f := fabric(t, seed, verbstest.Switch(2, 1))
		a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
		c, d := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
		f.Hold()
		a.Mem.Bytes()[0], c.Mem.Bytes()[0] = 1, 1
		post(t, a, a.Write(b, 0, 0, 1))
		post(t, c, c.Write(d, 0, 0, 1))
		require.True(t, f.Step())
		swapped += int(d.Mem.Bytes()[0])
		for f.Step() {
		}
		require.Equal(t, byte(1), b.Mem.Bytes()[0])
	}
	assert.Greater(t, swapped, 0)
	assert.Less(t, swapped, 20)
}

func TestDataInOrderIsSaidAsItIs(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, _ := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
	says := func() bool {
		in, err := a.QP.DataInOrder(verbs.OpWrite)
		require.NoError(t, err)
		return in
	}
	assert.True(t, says())
	f.OutOfOrder(true)
	assert.False(t, says())
	f.OutOfOrder(false)
	f.DenyOrder(true)
	assert.False(t, says())
	f.Host(0).Lack(verbs.FeatureQueryDataInOrder)
	_, err := a.QP.DataInOrder(verbs.OpWrite)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestADelayIsWaitedFor(t *testing.T) {
	f := fabric(t, 1, verbstest.Switch(2, 1))
	a, b := pair(t, f, verbs.QPConfig{}, verbs.Connection{})
	f.Delay(30*time.Millisecond, 40*time.Millisecond)
	start := time.Now()
	post(t, a, a.Write(b, 0, 0, 8))
	statuses(t, a, verbs.StatusSuccess)
	assert.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
}
