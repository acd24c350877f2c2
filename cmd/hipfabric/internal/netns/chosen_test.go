//go:build linux

package netns

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hipfabric/hipfabric"
)

func TestCallsKeepToTheRailsThatWereChosen(t *testing.T) {
	s := twoCables().build(t)
	for net := range s.ports {
		r := run(t, s.group(t, hipfabric.Config{Rails: []string{"=" + s.ports[net][0].Device}}), 1, most)
		before := s.ports[1-net][0].Sent()
		r.carries(s.ports[net][0])
		assert.Less(t, s.ports[1-net][0].Sent()-before, uint64(1<<20), "the other one carries too")
		r.stop()
	}
}
