package main

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"strings"
)

// maxLines is where a file has more than one subject.
const maxLines = 600

func length(t *tree) ([]finding, error) {
	var found []finding
	for _, f := range t.files {
		if n := bytes.Count(f.text, []byte("\n")); n > maxLines {
			found = append(found, finding{f.path, fmt.Sprintf("has %d lines; split it, %d is the most", n, maxLines)})
		}
	}
	return found, nil
}

// unfinished is spelt in halves, or this file would find itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func marks(t *tree) ([]finding, error) {
	var found []finding
	for _, f := range t.files {
		n := 0
		for line := range strings.Lines(string(f.text)) {
			n++
			if m := unfinished.FindString(line); m != "" {
				found = append(found, finding{fmt.Sprintf("%s:%d", f.path, n), "says " + m + "; finish it, or write down in the docs what is absent"})
			}
		}
	}
	return found, nil
}

func gofmt(t *tree) ([]finding, error) {
	var found []finding
	for _, f := range t.files {
		if !strings.HasSuffix(f.path, ".go") || under(f.dir, "testdata") {
			continue
		}
		want, err := format.Source(f.text)
		switch {
		case err != nil:
			found = append(found, finding{f.path, "does not parse: " + err.Error()})
		case !bytes.Equal(want, f.text):
			found = append(found, finding{f.path, "is not formatted; run gofmt -w " + f.path})
		}
	}
	return found, nil
}
