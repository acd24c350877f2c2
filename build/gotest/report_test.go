package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tested writes a package with this test file's body, runs go test -json on it and reports it.
func tested(t *testing.T, body string) (tally, string) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.org/m\n\ngo 1.25.0\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte("package m\n\nimport \"testing\"\n\n"+body), 0o644))
	cmd := exec.Command("go", "test", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	events, _ := cmd.Output() // its exit code is not this test's subject
	var out strings.Builder
	got, err := report(strings.NewReader(string(events)), &out)
	require.NoError(t, err)
	return got, out.String()
}

func TestPassingTestsLeaveTheirPackagesLineOnly(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) { t.Run(\"b\", func(t *testing.T) { t.Log(\"noise\") }) }\n")
	assert.Equal(t, tally{passed: 2}, got)
	assert.Regexp(t, `^ok  \texample.org/m\t[0-9.]+s\n$`, out)
}

func TestAPassingTestsResultsAreShown(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) {\n\tt.Log(\"noise\")\n\tt.Run(\"b\", func(t *testing.T) { t.Logf(\"RESULT: %d sheep\", 12) })\n}\n")
	assert.Equal(t, tally{passed: 2}, got)
	assert.Regexp(t, `^RESULT: TestA/b: 12 sheep\nok  \texample.org/m\t[0-9.]+s\n$`, out)
}

func TestASkipIsCountedAndItsReasonShown(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) { t.Skip(\"needs a moon\") }\n\nfunc TestB(*testing.T) {}\n")
	assert.Equal(t, tally{passed: 1, skipped: 1}, got)
	assert.Regexp(t, `--- SKIP: TestA: m_test.go:\d+: needs a moon\n`, out)
}

func TestAFailureShowsItsOwnOutputOnly(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) { t.Log(\"quiet\") }\n\nfunc TestB(t *testing.T) { t.Error(\"loud\") }\n")
	assert.Equal(t, tally{passed: 1, failed: 1}, got)
	assert.Contains(t, out, "loud")
	assert.Contains(t, out, "--- FAIL: TestB")
	assert.Contains(t, out, "FAIL\texample.org/m")
	assert.NotContains(t, out, "quiet")
}

func TestACrashCountsAsAFailureAndIsShown(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) { go func() { panic(\"boom\") }(); select {} }\n")
	assert.Positive(t, got.failed)
	assert.Contains(t, out, "boom")
}

func TestAPackageThatDoesNotBuildCountsAsAFailure(t *testing.T) {
	got, out := tested(t, "func TestA(t *testing.T) { undefined() }\n")
	assert.Equal(t, tally{failed: 1}, got)
	assert.Contains(t, out, "undefined: undefined")
}

func TestRunsAreSplitAtDashes(t *testing.T) {
	assert.Equal(t, [][]string{{"-p", "1", "./..."}, {"-race"}}, split([]string{"-p", "1", "./...", "--", "-race"}, "--"))
	assert.Empty(t, split(nil, "--"))
}
