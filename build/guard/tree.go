package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A tree is a checkout, read once and parsed as far as it parses.
type tree struct {
	root   string
	module string // import path of the module at root
	fset   *token.FileSet
	files  []*file
}

// A file is one text file; its Go parts are zero for others.
type file struct {
	path string // slash-separated, from the root
	dir  string // "." for the root
	text []byte
	ast  *ast.File // nil unless Go of this module; partial where it does not parse
	test bool      // a _test.go file
}

// texts are the endings that the rules on length and marks read.
var texts = []string{".go", ".c", ".h", ".hip", ".sh", ".py", ".md", ".yml", ".yaml"}

// unread are folders without source of ours.
var unread = []string{".git", "bin", "vendor", ".cache"}

func load(root string) (*tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("%s is not a module's root: %w", root, err)
	}
	t := &tree{root: root, fset: token.NewFileSet(), module: modulePath(mod)}
	var nested []string // other modules inside: read as text, not as our packages
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains(unread, d.Name()) {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && rel != "." {
				nested = append(nested, rel)
			}
			return nil
		}
		if !d.Type().IsRegular() || !isText(rel) {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		t.add(rel, text, nested)
		return nil
	})
	return t, err
}

func (t *tree) add(rel string, text []byte, nested []string) {
	f := &file{path: rel, dir: path.Dir(rel), text: text, test: strings.HasSuffix(rel, "_test.go")}
	ours := strings.HasSuffix(rel, ".go") && !under(f.dir, "testdata") &&
		!slices.ContainsFunc(nested, func(m string) bool { return within(f.dir, m) })
	if ours {
		// A syntax error is the gofmt rule's to tell; what did parse is still worth checking.
		f.ast, _ = parser.ParseFile(t.fset, rel, text, parser.ParseComments)
	}
	t.files = append(t.files, f)
}

func isText(rel string) bool {
	base := path.Base(rel)
	return slices.Contains(texts, path.Ext(rel)) || base == "Makefile" || strings.HasPrefix(base, "Dockerfile") || rel == ".ci/run"
}

func modulePath(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

// within says whether dir is base or lies below it.
func within(dir, base string) bool { return dir == base || strings.HasPrefix(dir, base+"/") }

// under says whether one of dir's folders has this name.
func under(dir, name string) bool { return slices.Contains(strings.Split(dir, "/"), name) }

// program says whether dir holds a program rather than a part of the library.
func program(dir string) bool {
	return within(dir, "cmd") || within(dir, "examples") || within(dir, "bench") || within(dir, "build")
}

// code yields the module's own Go files, parsed.
func (t *tree) code(yield func(*file) bool) {
	for _, f := range t.files {
		if f.ast != nil && !yield(f) {
			return
		}
	}
}

// library yields the Go files that an importer compiles: no tests, no programs.
func (t *tree) library(yield func(*file) bool) {
	for f := range t.code {
		if !f.test && !program(f.dir) && !yield(f) {
			return
		}
	}
}

// at names a position as file:line.
func (t *tree) at(p token.Pos) string {
	pos := t.fset.Position(p)
	return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
}

// local turns an import path of this module into its folder ("." for the root).
func (t *tree) local(importPath string) (string, bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}
