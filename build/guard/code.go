package main

import (
	"fmt"
	"go/ast"
	"slices"
)

// calls yields each selector that f takes from the package imported as importPath, under whatever name.
func calls(f *file, importPath string) func(func(*ast.SelectorExpr) bool) {
	return func(yield func(*ast.SelectorExpr) bool) {
		local := ""
		for spec, name := range imports(f) {
			if name == importPath {
				local = lastElement(importPath)
				if spec.Name != nil {
					local = spec.Name.Name
				}
			}
		}
		if local == "" {
			return
		}
		stopped := false
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || stopped {
				return !stopped
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
				stopped = !yield(sel)
			}
			return !stopped
		})
	}
}

func lastElement(importPath string) string {
	for i := len(importPath) - 1; i >= 0; i-- {
		if importPath[i] == '/' {
			return importPath[i+1:]
		}
	}
	return importPath
}

func packageName(t *tree) ([]finding, error) {
	forbidden := []string{"util", "utils", "common", "helper", "helpers", "types"}
	var found []finding
	told := map[string]bool{}
	for f := range t.code {
		if name := f.ast.Name.Name; slices.Contains(forbidden, name) && !told[f.dir] {
			told[f.dir] = true
			found = append(found, finding{f.dir, fmt.Sprintf("is named %s, which says nothing; name what it does", name)})
		}
	}
	return found, nil
}

func packageDoc(t *tree) ([]finding, error) {
	var found, dirs = []finding(nil), []string(nil)
	documented := map[string]bool{}
	for f := range t.code {
		if f.test {
			continue
		}
		if !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
		documented[f.dir] = documented[f.dir] || f.ast.Doc.Text() != ""
	}
	for _, dir := range dirs {
		if !documented[dir] {
			found = append(found, finding{dir, "has no package comment; doc.go says what the package is and where it stands"})
		}
	}
	return found, nil
}

// environment leaves variables to fabric/launch, so that two groups in a process can differ. Programs are free to read theirs.
func environment(t *tree) ([]finding, error) {
	reads := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	var found []finding
	for f := range t.library {
		if f.dir == "fabric/launch" {
			continue
		}
		for _, from := range []string{"os", "syscall", "golang.org/x/sys/unix", "golang.org/x/sys/windows"} {
			for sel := range calls(f, from) {
				if slices.Contains(reads, sel.Sel.Name) {
					found = append(found, finding{t.at(sel.Pos()), fmt.Sprintf("reads the environment by %s.%s; only fabric/launch may", from, sel.Sel.Name)})
				}
			}
		}
	}
	return found, nil
}

func noInit(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.library {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, finding{t.at(fn.Pos()), "declares init; importing the library does no work"})
			}
		}
	}
	return found, nil
}

// sleepAllowed names the files in which a sleep is the subject and not a way to wait for something, each with its reason.
func sleepAllowed(path string) bool {
	return false
}

func sleeps(t *tree) ([]finding, error) {
	var found []finding
	for f := range t.code {
		if sleepAllowed(f.path) {
			continue
		}
		for sel := range calls(f, "time") {
			if sel.Sel.Name == "Sleep" {
				found = append(found, finding{t.at(sel.Pos()), "sleeps; wait for the event itself, with a deadline"})
			}
		}
	}
	return found, nil
}
