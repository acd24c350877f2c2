//go:build rxevm

package rxevm_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryCommandOfTheReadmeWorks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	readme := string(text)

	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		script.WriteString(block[1])
	}
	require.NotEmpty(t, script)
	stdout, stderr, code := guest(t, "bash", "-exc", script.String())
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "PORT_ACTIVE")

	outside := 0
	for _, command := range regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(readme, -1) {
		if command[1] == "make test-rxe" || command[1] == "make shell-rxe" { // this run; a terminal
			continue
		}
		outside++
		cmd := exec.Command("bash", "-c", command[1])
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s: %s", command[1], out)
		assert.NotContains(t, string(out), "no tests to run")
	}
	assert.Equal(t, 3, outside)
}

func TestARingHasTwoPortsAHost(t *testing.T) {
	stdout, stderr, code := guest(t, "bash", "-ec", "rxe-topology ring:3 1500; ibv_devinfo; cat /run/rxe-topology; ip route get 10.0.12.2 oif h1a")
	assert.Zero(t, code, stderr)
	assert.Equal(t, 6, strings.Count(stdout, "PORT_ACTIVE"))
	assert.Equal(t, 6, strings.Count(stdout, "1024 (3)"), "an MTU of 1500 is an RDMA MTU of 1024")
	assert.Contains(t, stdout, "rxe_h3a h3a 3 10.0.31.3 rxe_h1b h1b 1 10.0.31.1\n")
	assert.Contains(t, stdout, "10.0.12.2 dev h1a")
}
