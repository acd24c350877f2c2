//go:build unix && !(linux && cgo)

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// demoOn is what the demo's last line says of device memory in a build that has none, up to what went over RoCE.
func demoOn(out string) string {
	_, why, _ := strings.Cut(out, "device memory not at all: ")
	why, _, _ = strings.Cut(why, "; host memory over roce")
	return "device memory not at all: " + why + "; host memory"
}

func TestDeviceMemoryIsNamedAsWhatThisBuildLacks(t *testing.T) {
	for _, args := range [][]string{{"doctor", "hip"}, {"perf", "-n", "2", "--kind", "roce", "--op", "barrier"}, {"perf", "-n", "1", "--kind", "staged", "--op", "barrier"}} {
		code, _, stderr := runs(t, args...)
		assert.Equal(t, exitEnvironment, code, stderr)
		assert.Contains(t, stderr, "cgo")
	}
}
