package bootstrap

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func TestTheLargestBlobsAreGathered(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 5))
	each(5, func(r int) {
		blob := make([]byte, MaxBlob)
		blob[0], blob[MaxBlob-1] = byte(r), byte(r)
		all, err := s[r].AllGather(ctx, blob)
		if assert.NoError(t, err) {
			for from, b := range all {
				assert.Equal(t, []int{MaxBlob, from, from}, []int{len(b), int(b[0]), int(b[MaxBlob-1])})
			}
		}
	})
	_, err := s[1].AllGather(ctx, make([]byte, MaxBlob+1))
	assert.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "the blob has 65537 bytes; at most 65536")
	_, err = s[0].Broadcast(ctx, make([]byte, MaxBlob+1))
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestABlobBeyondTheCapEndsItsSender(t *testing.T) {
	s := group(t, configs(t, 2))
	s[1].post(func() {
		s[1].loop.contribute(contribution{step: 1, label: "all-gather", blob: make([]byte, MaxBlob+1)})
	})
	causes(t, s[0])
	assert.ErrorContains(t, s[0].Cause(), "a blob of 65537 bytes")
}

func TestEveryRankGetsTheSameVote(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 4))
	each(4, func(r int) { assert.NoError(t, s[r].Vote(ctx, "tcp", nil)) })
	errs := make([]error, 4)
	each(4, func(r int) {
		var no error
		switch r {
		case 1:
			no = fabric.Unsupportedf("no such device")
		case 3:
			no = errors.New("not today")
		}
		errs[r] = s[r].Vote(ctx, "roce", no)
	})
	for r, err := range errs {
		var v *VoteError
		require.ErrorAs(t, err, &v, "rank %d", r)
		assert.Equal(t, "roce", v.Step)
		assert.Equal(t, []Refusal{{1, "unsupported: no such device"}, {3, "not today"}}, v.No)
		assert.Equal(t, "vote on roce: no from rank 1: unsupported: no such device; rank 3: not today", v.Error())
		assert.ErrorIs(t, err, fabric.ErrUnsupported)
		assert.NoError(t, s[r].Cause(), "a no does not fail the group")
	}
}

func TestCompareNamesTheFieldOnEveryRank(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	errs := make([]error, 3)
	each(3, func(r int) {
		settings := []Setting{{"B", "1"}, {"A", "1"}}
		assert.NoError(t, s[r].Compare(ctx, settings))
		if r == 2 {
			settings[1].Value = "2"
		}
		errs[r] = s[r].Compare(ctx, settings)
	})
	sameCause(t, errs, fabric.ErrMismatch, `A: rank 0 has "1", rank 2 has "2"`)
	assert.ErrorIs(t, s[0].Compare(ctx, []Setting{{}}), fabric.ErrInvalid)
}

func TestDifferentExchangesAreADesync(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 3))
	errs := make([]error, 3)
	each(3, func(r int) {
		if r == 2 {
			errs[r] = s[r].Vote(ctx, "tcp", nil)
		} else {
			_, errs[r] = s[r].AllGather(ctx, nil)
		}
	})
	sameCause(t, errs, fabric.ErrDesync, "rank 0 is in exchange 1, all-gather; rank 2 in exchange 1, vote on tcp")
}

func TestAnExchangeEndedByItsContextIsOver(t *testing.T) {
	ctx := testContext(t)
	s := group(t, configs(t, 2))
	brief, cancel := context.WithTimeout(ctx, 20*ms)
	_, err := s[0].AllGather(brief, []byte("early"))
	cancel()
	assert.Equal(t, context.DeadlineExceeded, err)
	each(2, func(r int) {
		if r == 1 {
			got, err := s[1].AllGather(ctx, []byte("late"))
			assert.NoError(t, err)
			assert.Equal(t, [][]byte{[]byte("early"), []byte("late")}, got, "the others are not held up")
		}
		got, err := s[r].AllGather(ctx, []byte{byte(r)})
		assert.NoError(t, err)
		assert.Equal(t, [][]byte{{0}, {1}}, got)
	})
}
