package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheExitCodeIsGoTestsAndTheFirstFailureEndsTheRuns(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gotest")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/m\n\ngo 1.25.0\n",
		"good/a_test.go": "package good\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n",
		"bad/b_test.go":  "package bad\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Fail() }\n",
	} {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	gotest := func(args ...string) (string, int) {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, _ := cmd.Output()
		return string(out), cmd.ProcessState.ExitCode()
	}

	text, code := gotest("./good", "--", "-count=1", "./good")
	assert.Zero(t, code)
	assert.Regexp(t, `(?s)ok  \texample.org/m/good.*\n2 passed, 0 failed, 0 skipped\n$`, text)

	text, code = gotest("./bad", "--", "./good")
	assert.Equal(t, 1, code)
	assert.NotContains(t, text, "example.org/m/good")
	assert.Regexp(t, `\n0 passed, 1 failed, 0 skipped\n$`, text)
}
