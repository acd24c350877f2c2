package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// run runs the go command in dir, below root, and returns what it printed.
func (t *tree) run(dir string, env []string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(t.root, filepath.FromSlash(dir))
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// fabricPure asks the go command whether anything below fabric needs a C compiler, through any number of imports.
func fabricPure(t *tree) ([]finding, error) {
	if _, err := os.Stat(filepath.Join(t.root, "fabric")); err != nil {
		return nil, nil
	}
	out, errs, err := t.run(".", []string{"CGO_ENABLED=1"}, "list", "-e", "-deps", "-f", "{{if and (not .Standard) .CgoFiles}}{{.ImportPath}}{{end}}", "./fabric/...")
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, errs)
	}
	var found []finding
	for _, pkg := range strings.Fields(out) {
		found = append(found, finding{pkg, "needs cgo and is reached from ./fabric/...; an engine that wants TCP alone needs no C compiler"})
	}
	return found, nil
}

// modules are the folders with a go.mod of ours.
func (t *tree) modules() []string {
	all := []string{"."}
	if _, err := os.Stat(filepath.Join(t.root, "tools", "go.mod")); err == nil {
		all = append(all, "tools")
	}
	return all
}

// noReplace keeps `go install module/cmd/hipfabric@latest` working, which a replace or exclude line forbids.
func noReplace(t *tree) ([]finding, error) {
	var found []finding
	for _, dir := range t.modules() {
		name := filepath.Join(t.root, dir, "go.mod")
		mod, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		n := 0
		for line := range strings.Lines(string(mod)) {
			n++
			if words := strings.Fields(line); len(words) > 0 && slices.Contains([]string{"replace", "exclude"}, strings.TrimSuffix(words[0], "(")) {
				found = append(found, finding{fmt.Sprintf("%s:%d", filepath.ToSlash(filepath.Join(dir, "go.mod")), n), "has a " + words[0] + " line; go install ...@latest refuses a module with one"})
			}
		}
	}
	return found, nil
}

// tidy looks at the module that importers see; make lint looks at tools, whose tidying downloads far more than a test run should.
func tidy(t *tree) ([]finding, error) {
	out, errs, err := t.run(".", nil, "mod", "tidy", "-diff")
	if err != nil {
		return []finding{{"go.mod", "is not tidy; run go mod tidy\n" + out + errs}}, nil
	}
	return nil, nil
}
