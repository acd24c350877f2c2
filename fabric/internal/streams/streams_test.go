package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAStreamIsRememberedUntilItHasPassedItsLastUse(t *testing.T) {
	var u Used
	use := func(stream uintptr) (fresh bool) {
		fresh = u.Begin(stream)
		u.LaidOut()
		return fresh
	}
	assert.True(t, use(1))
	assert.True(t, use(2))
	early := u.Laid()
	assert.False(t, use(1))
	u.Passed(1, early)
	assert.Equal(t, []uintptr{1, 2}, u.Left(), "1 was used since")
	u.Passed(2, early)
	assert.Equal(t, []uintptr{1}, u.Left())
	u.Passed(1, u.Laid())
	assert.Empty(t, u.Left())
}

func TestAUseThatIsNotLaidOutYetIsNotPassed(t *testing.T) {
	var u Used
	u.Begin(1)
	u.Passed(1, u.Laid())
	assert.Equal(t, []uintptr{1}, u.Left())
}

func TestAStreamIsKeptForEveryPlan(t *testing.T) {
	var u Used
	u.Keep(1)
	u.Keep(1)
	u.Drop(1)
	u.Passed(1, u.Laid())
	assert.Equal(t, []uintptr{1}, u.Left())
	u.Drop(1)
	u.Passed(1, u.Laid())
	assert.Empty(t, u.Left())
}
