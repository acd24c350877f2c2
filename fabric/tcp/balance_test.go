package tcp

import (
	"testing"

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
		"alike, much left":          {[]pace{{100, 0}, {100, 0}}, 6400, false},
		"alike, the last part":      {[]pace{{100, 0}, {100, 0}}, n, false},
		"slow, much left":           {[]pace{{100, 0}, {400, 0}}, 6400, false},
		"slow, the last part":       {[]pace{{100, 0}, {400, 0}}, n, true},
		"slow, four parts":          {[]pace{{100, 0}, {400, 0}}, 4 * n, false},
		"slow and full, four parts": {[]pace{{100, 10}, {400, 0}}, 4 * n, true},
		"fast, the last part":       {[]pace{{400, 0}, {100, 0}}, n, false},
		"fast but full":             {[]pace{{400, 1000}, {100, 0}}, n, true},
		"of unknown pace":           {[]pace{{0, 0}, {400, 0}}, n, false},
		"beside one of unknown":     {[]pace{{100, 0}, {0, 0}}, n, false},
		"many fast ones, one part":  {[]pace{{100, 0}, {100, 0}, {100, 0}}, n, false},
	} {
		all := lanes(c.paces...)
		assert.Equal(t, c.want, leavesPart(all[0], all, n, c.left), name)
	}
}
