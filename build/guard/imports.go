package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// imports yields each import of f with its path.
func imports(f *file) func(func(*ast.ImportSpec, string) bool) {
	return func(yield func(*ast.ImportSpec, string) bool) {
		for _, spec := range f.ast.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil && !yield(spec, name) {
				return
			}
		}
	}
}

// cgoPlaces keeps C behind the few packages that exist to hold it.
func cgoPlaces(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.code {
		if within(f.dir, "csrc") || within(f.dir, "hipgo/internal/driver") || within(f.dir, "verbs/internal/driver") {
			continue
		}
		for spec, name := range imports(f) {
			if name == "C" {
				found = append(found, finding{t.at(spec.Pos()), `imports "C"; only csrc, hipgo/internal/driver and verbs/internal/driver may`})
			}
		}
	}
	return found, nil
}

// fabricImports keeps fabric free of the bindings and of the root that composes it.
func fabricImports(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.library {
		if !within(f.dir, "fabric") {
			continue
		}
		for spec, name := range imports(f) {
			dir, ours := t.local(name)
			if ours && (dir == "." || within(dir, "hipgo") || within(dir, "verbs") || within(dir, "csrc")) {
				found = append(found, finding{t.at(spec.Pos()), fmt.Sprintf("imports %s; fabric declares the seam that it needs and imports neither hipgo, verbs, csrc nor the root", name)})
			}
		}
	}
	return found, nil
}

// combine lets only the root (and programs, and tests) bring hipgo, verbs and fabric together.
func combine(t *tree) ([]finding, error) {
	rooms := []string{"fabric", "hipgo", "verbs"}
	room := func(dir string) string {
		i := slices.IndexFunc(rooms, func(r string) bool { return within(dir, r) })
		if i < 0 {
			return ""
		}
		return rooms[i]
	}
	var found []finding
	seen := map[string]string{} // package folder -> the room that it belongs to, or imported first
	for f := range t.library {
		if f.dir == "." || within(f.dir, "fabric") { // fabric has a stricter rule of its own
			continue
		}
		if seen[f.dir] == "" {
			seen[f.dir] = room(f.dir)
		}
		for spec, name := range imports(f) {
			dir, ours := t.local(name)
			other := room(dir)
			switch {
			case !ours || other == "" || other == seen[f.dir]:
			case seen[f.dir] == "":
				seen[f.dir] = other
			default:
				found = append(found, finding{t.at(spec.Pos()), fmt.Sprintf("joins %s with %s; only the root, cmd, examples and tests may", other, seen[f.dir])})
			}
		}
	}
	return found, nil
}

// dependencies keeps what an importer must download to the standard library and golang.org/x/sys.
func dependencies(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.code {
		if f.test || within(f.dir, "cmd") || within(f.dir, "examples") {
			continue
		}
		for spec, name := range imports(f) {
			if _, ours := t.local(name); ours || within(name, "golang.org/x/sys") {
				continue
			}
			if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") {
				found = append(found, finding{t.at(spec.Pos()), fmt.Sprintf("imports %s; outside cmd, examples and tests only the standard library and golang.org/x/sys are allowed", name)})
			}
		}
	}
	return found, nil
}

// unsafeAllowed lists the packages that share memory with a device, a NIC, the kernel or C, and why.
func unsafeAllowed(dir string) bool {
	switch dir {
	case "fabric", // Bytes views an engine's numbers as bytes
		"fabric/roce",          // memory that a NIC writes
		"fabric/internal/link": // buffers handed to raw system calls
		return true
	}
	return within(dir, "hipgo") || within(dir, "verbs") || within(dir, "csrc")
}

func unsafePlaces(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.code {
		if f.test || unsafeAllowed(f.dir) {
			continue
		}
		for spec, name := range imports(f) {
			if name == "unsafe" {
				found = append(found, finding{t.at(spec.Pos()), "imports unsafe; only packages that share memory with a device, a NIC or the kernel may, and unsafeAllowed names them"})
			}
		}
	}
	return found, nil
}
