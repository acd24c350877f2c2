package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	commandLine = regexp.MustCompile("(?m)(?:^|[`/ (])hipfabric ([a-z]+)((?: +[^`\n]*)?)")
	longFlag    = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
)

// TestDocumentsNameCommandsAndFlagsThatExist reads the command lines in code of every document.
func TestDocumentsNameCommandsAndFlagsThatExist(t *testing.T) {
	docs, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	receipts, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	docs = append(docs, receipts...)
	root := newRoot(nil)
	found := 0
	for _, doc := range append(docs, "../../README.md") {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, match := range commandLine.FindAllStringSubmatch(codeOf(string(text)), -1) {
			path := []string{match[1]}
			if words := strings.Fields(match[2]); match[1] == "doctor" && len(words) > 0 {
				path = append(path, words[0])
			}
			cmd, _, err := root.Find(path)
			if !assert.NoError(t, err, "%s: %q", doc, match[0]) {
				continue
			}
			found++
			ours, _, _ := strings.Cut(match[2], " -- ") // what follows is somebody else's
			for _, flag := range longFlag.FindAllStringSubmatch(ours, -1) {
				known := append(flagNames(cmd), "--help")
				assert.True(t, slices.Contains(known, "--"+flag[1]), "%s: %s has no --%s: %q", doc, cmd.CommandPath(), flag[1], match[0])
			}
		}
	}
	assert.NotZero(t, found)
}

// codeOf keeps the indented blocks, the fenced ones and the spans between backticks, each on a line of its own.
func codeOf(text string) string {
	var code []string
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") {
			code = append(code, strings.TrimSpace(line))
			continue
		}
		for i, span := range strings.Split(line, "`") {
			if i%2 == 1 {
				code = append(code, span)
			}
		}
	}
	return strings.Join(code, "\n")
}
