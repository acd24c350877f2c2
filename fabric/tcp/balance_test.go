package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric/fabric/internal/link"
)

func TestASlowLaneLeavesTheEndToTheOthers(t *testing.T) {
	lanes := func(paces ...pace) []*lane {
		var all []*lane
		for _, p := range paces {
			all = append(all, &lane{conn: &link.Conn{}, pace: p})
		}
		return all
	}
	const n = 64
	for name, c := range map[string]struct {
		paces []pace // the first is asked
		left  int
		want  bool
	}{
		"alike, much left":          {[]pace{{rate: 100, queue: 0}, {rate: 100, queue: 0}}, 6400, false},
		"alike, the last part":      {[]pace{{rate: 100, queue: 0}, {rate: 100, queue: 0}}, n, false},
		"slow, much left":           {[]pace{{rate: 100, queue: 0}, {rate: 400, queue: 0}}, 6400, false},
		"slow, the last part":       {[]pace{{rate: 100, queue: 0}, {rate: 400, queue: 0}}, n, true},
		"slow, four parts":          {[]pace{{rate: 100, queue: 0}, {rate: 400, queue: 0}}, 4 * n, false},
		"slow and full, four parts": {[]pace{{rate: 100, queue: 10}, {rate: 400, queue: 0}}, 4 * n, true},
		"fast, the last part":       {[]pace{{rate: 400, queue: 0}, {rate: 100, queue: 0}}, n, false},
		"fast but full":             {[]pace{{rate: 400, queue: 1000}, {rate: 100, queue: 0}}, n, true},
		"of unknown pace":           {[]pace{{rate: 0, queue: 0}, {rate: 400, queue: 0}}, n, false},
		"beside one of unknown":     {[]pace{{rate: 100, queue: 0}, {rate: 0, queue: 0}}, n, false},
		"many fast ones, one part":  {[]pace{{rate: 100, queue: 0}, {rate: 100, queue: 0}, {rate: 100, queue: 0}}, n, false},
	} {
		all := lanes(c.paces...)
		assert.Equal(t, c.want, leavesPart(all[0], all, n, c.left), name)
	}
}

func TestALaneThatLeavesPartsTakesOneNowAndThen(t *testing.T) {
	slow := &lane{conn: &link.Conn{}, pace: pace{rate: 100}, took: time.Now()}
	f := &peer{up: 2, lanes: []*lane{slow, {conn: &link.Conn{}, pace: pace{rate: 400}}}, pacedAt: time.Now().Add(time.Hour)}
	f.ToSend = 64
	assert.True(t, f.leaves(slow, 64), "it has just taken one")
	slow.took = time.Now().Add(-2 * paceAgain)
	slow.pace.stuck = true
	assert.True(t, f.leaves(slow, 64), "a part on it would be stuck")
	slow.pace.stuck = false
	assert.False(t, f.leaves(slow, 64), "its pace may be another by now")
	assert.True(t, f.leaves(slow, 64), "one is enough")
}
