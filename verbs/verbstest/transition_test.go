package verbstest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/internal/driver"
)

func TestACQThatIsGoneIsNotPolled(t *testing.T) {
	f, err := New(1, Switch(1, 1))
	require.NoError(t, err)
	defer f.Close()
	host := &table{f, f.Host(0)}
	c, e := host.Open("mem0")
	require.Zero(t, e)
	cq, _, e := host.CreateCQ(c, 1, 0, 0)
	require.Zero(t, e)
	_, e = host.Poll(cq, make([]driver.WC, 1))
	require.Zero(t, e)
	require.Zero(t, host.DestroyCQ(cq))
	_, e = host.Poll(cq, make([]driver.WC, 1))
	require.Equal(t, syscall.EINVAL, e)
	require.Zero(t, host.Close(c))
}

func TestATransitionTakesWhatItMustHaveAndNoMore(t *testing.T) {
	for from := range uint32(7) {
		for to := range uint32(7) {
			c, there := transition(from, to)
			if !there {
				assert.Equal(t, syscall.EINVAL, permitted(from, to, maskState), "%d to %d", from, to)
				continue
			}
			assert.Zero(t, permitted(from, to, maskState|c.must|c.may))
			for bit := uint32(2); bit <= maskPeer; bit <<= 1 {
				switch {
				case c.must&bit != 0:
					assert.Equal(t, syscall.EINVAL, permitted(from, to, maskState|c.must&^bit), "%d to %d without %#x", from, to, bit)
				case c.may&bit == 0:
					assert.Equal(t, syscall.EINVAL, permitted(from, to, maskState|c.must|bit), "%d to %d with %#x", from, to, bit)
				}
			}
		}
	}
	for _, step := range [][2]uint32{{stateReset, stateRTR}, {stateReset, stateRTS}, {stateInit, stateRTS}, {stateRTS, stateRTR}, {stateErr, stateInit}} {
		_, there := transition(step[0], step[1])
		assert.False(t, there, "%v", step)
	}
}
