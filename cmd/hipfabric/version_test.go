package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionSaysWhatRanksMustShare(t *testing.T) {
	code, out, _ := command("version")
	require.Equal(t, exitOK, code)
	for _, want := range []string{"hipfabric ", "commit", runtime.Version(), "wire      2"} {
		assert.Contains(t, out, want)
	}
	code, out, _ = command("version", "--json")
	require.Equal(t, exitOK, code)
	var b build
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	assert.Equal(t, readBuild(), b)
}

func TestTheWireVersionIsThatOfTheBootstrap(t *testing.T) {
	hello, err := os.ReadFile("../../fabric/bootstrap/hello.go")
	require.NoError(t, err)
	assert.Regexp(t, fmt.Sprintf(`\bwireVersion\s+= %d\n`, wireVersion), string(hello))
}
