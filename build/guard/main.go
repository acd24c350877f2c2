// Guard proves the rules that docs and reviews alone would not keep: where cgo may stand, what may import what, how long
// a file may grow. It prints one line a broken rule and exits 1 when there is one.
//
//	go run ./build/guard [DIR]
package main

import (
	"fmt"
	"io"
	"os"
)

// A finding is one place that breaks a rule.
type finding struct {
	where string // file:line, or a package or module
	what  string // what stands there, and what the rule asks for
}

// A rule names what it keeps and looks for places that break it.
type rule struct {
	name  string
	check func(*tree) ([]finding, error)
}

// rules lists every rule; the planted trees of the tests cover each by name.
func rules() []rule {
	return []rule{
		{"cgo", cgoPlaces},
		{"fabric-imports", fabricImports},
		{"combine", combine},
		{"dependencies", dependencies},
		{"fabric-pure", fabricPure},
		{"replace", noReplace},
		{"tidy", tidy},
		{"length", length},
		{"marks", marks},
		{"gofmt", gofmt},
		{"package-name", packageName},
		{"package-doc", packageDoc},
		{"unsafe", unsafePlaces},
		{"environment", environment},
		{"init", noInit},
		{"global-state", globalState},
		{"sleep", sleeps},
	}
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	broken, err := guard(root, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(2)
	}
	if broken > 0 {
		os.Exit(1)
	}
}

// guard checks the module at root, writes a line a finding and a summary, and returns how many findings there were.
func guard(root string, w io.Writer) (int, error) {
	t, err := load(root)
	if err != nil {
		return 0, err
	}
	broken, all := 0, rules()
	for _, r := range all {
		found, err := r.check(t)
		if err != nil {
			return broken, fmt.Errorf("%s: %w", r.name, err)
		}
		for _, f := range found {
			fmt.Fprintf(w, "guard: %s: %s: %s\n", r.name, f.where, f.what)
		}
		broken += len(found)
	}
	if broken == 0 {
		fmt.Fprintf(w, "guard: all %d rules hold over %d files\n", len(all), len(t.files))
	} else {
		fmt.Fprintf(w, "guard: %d places break a rule\n", broken)
	}
	return broken, nil
}
