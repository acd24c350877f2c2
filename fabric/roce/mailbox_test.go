package roce

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTagsTellKindsOfCallsApart(t *testing.T) {
	seen := map[uint32]mailCall{}
	calls := []mailCall{{op: fabric.AllGather}, {op: fabric.Exchange}}
	for _, dt := range []fabric.DType{fabric.F16, fabric.BF16, fabric.F32} {
		for _, op := range fabric.ReduceOps() {
			calls = append(calls, mailCall{fabric.AllReduce, dt, op})
		}
	}
	require.Len(t, calls, tagKinds)
	for _, c := range calls {
		for _, bytes := range []int{0, 1, 16, 3853, MaxMailboxBytes - 1, MaxMailboxBytes} {
			tag := tagOf(c.kind(), bytes)
			require.NotZero(t, tag)
			require.Less(t, tag, uint32(noteTag))
			_, twice := seen[tag]
			require.False(t, twice, "%v of %d bytes has the tag of %v", c, bytes, seen[tag])
			seen[tag] = c
			got, n, ok := callOfTag(uint64(tag))
			require.True(t, ok)
			assert.Equal(t, c, got)
			assert.Equal(t, bytes, n)
		}
	}
	for _, tag := range []uint64{0, tagKinds*tagBytes + 1, noteTag, farewellTag} {
		_, _, ok := callOfTag(tag)
		assert.False(t, ok, "%d", tag)
	}
	for _, op := range fabric.Ops() {
		for dt := range fabric.F64 + 2 {
			c := mailCall{op, dt, fabric.Sum}
			goes := op == fabric.AllGather || op == fabric.Exchange || op == fabric.AllReduce && (dt == fabric.F16 || dt == fabric.BF16 || dt == fabric.F32)
			assert.Equal(t, goes, c.kind() >= 0, "%v of %v", op, dt)
		}
	}
}

func TestAFlagIsOfTheCallNearestToAKnownOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		near := rapid.Uint64Range(0, 1<<62).Draw(r, "near")
		by := rapid.Int64Range(-1<<(flagShift-1), 1<<(flagShift-1)-1).Draw(r, "by")
		call := near + uint64(by)
		flag := flagOf(rapid.Uint64Range(0, farewellTag).Draw(r, "tag"), call)
		if got := epochOf(flag, near); got != call {
			r.Fatalf("%#x is of call %d and not of %d", flag, got, call)
		}
		if got := earlier(flag, flagOf(7, near)); got != (by < 0) {
			r.Fatalf("call %d is before %d: %v", call, near, got)
		}
	})
}

func TestStripesCoverAPayloadOnceInWholePacks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bytes, stripes := rapid.IntRange(0, 9000).Draw(r, "bytes"), rapid.IntRange(1, MaxStripes).Draw(r, "stripes")
		at, most, least := 0, 0, bytes
		for i := range stripes {
			from, to := stripeOf(bytes, stripes, i)
			if from != at || to < from || (to != bytes && to%mailPack != 0) {
				r.Fatalf("stripe %d is %d to %d, behind %d", i, from, to, at)
			}
			at, most, least = to, max(most, to-from), min(least, to-from)
		}
		if at != bytes || most-least > 2*mailPack {
			r.Fatalf("%d of %d bytes; stripes of %d to %d", at, bytes, least, most)
		}
	})
}

func TestEachPairHasAsManyStripesAsTheWidest(t *testing.T) {
	l := func(a, b, n int) circuit {
		return circuit{A: a, B: b, Via: -1, Links: []link{{Rank: [2]int{a, b}, MTU: 1024 * (n + 1)}}}
	}
	all, stripes := stripesOf([]circuit{l(0, 1, 0), l(0, 1, 1), l(0, 1, 2), l(0, 2, 0), l(1, 2, 0), l(1, 2, 1)})
	require.Equal(t, 3, stripes)
	require.Len(t, all, 9)
	links := map[*link]bool{}
	for i := range all {
		assert.False(t, links[&all[i].Links[0]], "a link of its own")
		links[&all[i].Links[0]] = true
	}
	mtus := []int{}
	for i := range all {
		mtus = append(mtus, all[i].Links[0].MTU/1024)
	}
	assert.Equal(t, []int{1, 2, 3, 1, 1, 1, 1, 2, 1}, mtus)
}

type noRest struct{ fabric.StreamTransport }

type noGPU struct{ GPU }

func TestBadMailboxSettingsAreRefusedByName(t *testing.T) {
	for want, change := range map[string]func(*MailboxConfig){
		"a mailbox needs a Rest":              func(c *MailboxConfig) { c.Rest = nil },
		"a mailbox needs a GPU":               func(c *MailboxConfig) { c.GPU = nil },
		"Image is empty":                      func(c *MailboxConfig) { c.Image = nil },
		"the mailbox's SlotBytes is 1000; a ": func(c *MailboxConfig) { c.SlotBytes = 1000 },
		"the mailbox's SlotBytes is -4096; a": func(c *MailboxConfig) { c.SlotBytes = -4096 },
		"SlotBytes is 2097152; a multiple of 4096, at most 1048576, or 0 for 65536": func(c *MailboxConfig) { c.SlotBytes = 2 << 20 },
		"Stripes is 9": func(c *MailboxConfig) { c.RoCE.Stripes = 9 },
	} {
		c := MailboxConfig{GPU: noGPU{}, Rest: noRest{}, Image: []byte{1}}
		change(&c)
		_, err := OpenMailbox(t.Context(), newMeshes(1)[0], nil, c)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		assert.ErrorContains(t, err, want)
	}
}

func TestAMailboxChannelIsItsOwn(t *testing.T) {
	c := MailboxConfig{SlotBytes: 8192}
	q := c.queuePairs()
	assert.Equal(t, "mailbox", q.Channel)
	assert.Contains(t, q.settings(), setting{"Mailbox.SlotBytes", "8192"})
	c.RoCE.Channel = "two"
	q = c.queuePairs()
	assert.Equal(t, "two", q.Channel)
}

func TestAThreadIsPinnedWhereItMayRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.ErrorIs(t, pin([]int{0}), fabric.ErrUnsupported)
		return
	}
	done := make(chan [2]error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		done <- [2]error{pin([]int{0}), pin([]int{1000})}
	}()
	errs := <-done
	if errs[0] != nil {
		t.Skipf("CPU 0 is not ours: %v", errs[0])
	}
	require.Error(t, errs[1], "no machine has that CPU")
	assert.True(t, strings.Contains(errs[1].Error(), "invalid"), errs[1])
}
