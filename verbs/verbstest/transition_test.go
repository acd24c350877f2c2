package verbstest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
