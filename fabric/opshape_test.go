package fabric_test

import (
	"errors"
	"testing"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorsBesideCallsAreOpErrorsToo(t *testing.T) {
	f := newFake(1, 2)
	f.noMemory = errors.New("no pages")
	_, noPages := fabric.New(f, fabric.Options{}).Alloc(8)
	_, polled := fabric.Started{}.Poll()
	for want, err := range map[string]error{
		"fabric: alloc, rank 1 over fake: no pages":           noPages,
		"fabric: wait: invalid: a Started of no Begin":        fabric.Started{}.Wait(),
		"fabric: wait: invalid: a Started of no Begin (Poll)": polled,
	} {
		var op *fabric.OpError
		require.ErrorAs(t, err, &op, want)
		assert.Contains(t, want, err.Error())
		assert.Equal(t, []int{-1, -1}, []int{op.Peer, op.From}, want)
	}
	assert.ErrorIs(t, polled, fabric.ErrInvalid)
	assert.ErrorIs(t, noPages, f.noMemory)
}
