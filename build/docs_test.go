package build_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("..", name))
	require.NoError(t, err)
	return string(text)
}

func documents(t *testing.T) []string {
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	names := []string{"README.md"}
	for _, d := range docs {
		names = append(names, "docs/"+filepath.Base(d))
	}
	return names
}

func TestTheReadmesProgramIsTheExampleThatCIRuns(t *testing.T) {
	_, block, found := strings.Cut(read(t, "README.md"), "```go\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	example := read(t, "examples/gather/main.go")
	assert.Equal(t, example[strings.Index(example, "package main"):], block)
}

func TestTheReadmeStaysShort(t *testing.T) {
	assert.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), 150)
}

func TestMakeTargetsThatTheDocsNameExist(t *testing.T) {
	makefile := read(t, "Makefile")
	named := regexp.MustCompile("(?m)(?:`|^ {4})make ([a-z][a-z-]*)")
	for _, doc := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, doc), -1) {
			assert.Regexp(t, `(?m)^`+m[1]+`:`, makefile, "%s names make %s", doc, m[1])
		}
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			_, err := os.Stat(filepath.Join("..", filepath.Dir(doc), m[1]))
			assert.NoError(t, err, "%s links to it", doc)
		}
	}
}

func TestTheGuidesCodeOnGPUMemoryIsCompiled(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/guide.md"), "## GPU memory\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	compiled := strings.ReplaceAll(read(t, "example_device_test.go"), "\t", "    ")
	lines := 0
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "    ") {
			lines++
			assert.Contains(t, compiled, line)
		}
	}
	assert.Greater(t, lines, 30)
}
