package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// LoadError is a runtime that could not be had.
type LoadError struct {
	Library string // the file, or "" where none was found
	Symbol  string // the required entry point that it lacks, or ""
	Err     error  // why, where it is no missing symbol
}

func (e *LoadError) Error() string {
	switch {
	case e.Symbol != "":
		return fmt.Sprintf("hipgo: %s lacks %s, which every HIP from 5.2 on has: is it a HIP runtime, and whole?", e.Library, e.Symbol)
	case e.Library == "":
		return "hipgo: " + e.Err.Error()
	}
	return fmt.Sprintf("hipgo: %s: %v", e.Library, e.Err)
}

// Unwrap gives the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// Is makes all of them errors.ErrUnsupported.
func (e *LoadError) Is(target error) bool { return target == errors.ErrUnsupported }

// ErrSecond says that two HIP runtimes in one process break each other.
var ErrSecond = errors.New("a second HIP runtime in one process")

// names of the runtime, best first: what is looked for when no file was named.
func names() []string {
	n := []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}
	for _, dir := range []string{"/opt/rocm/lib", "/opt/rocm/core-*/lib", "/opt/rocm-*/lib"} {
		for _, major := range []string{"7", "6", "5"} {
			found, _ := filepath.Glob(dir + "/libamdhip64.so." + major) // the only error is a bad pattern
			slices.Reverse(found)
			n = append(n, found...)
		}
	}
	return n
}

// resident finds the runtimes that the process already has, by handle and file.
func resident() (handles []uintptr, files []string) {
	for major := 9; major >= 4; major-- {
		if h, _ := open(fmt.Sprintf("libamdhip64.so.%d", major), true); h != 0 && !slices.Contains(handles, h) {
			handles, files = append(handles, h), append(files, where(h))
		}
	}
	return handles, files
}

// Load gives the runtime of path; with path "" that which the process already has, else the first that is found.
func Load(path string) (*Table, error) {
	if !Built {
		return nil, &LoadError{Library: path, Err: ErrBuild}
	}
	handles, files := resident()
	if path == "" {
		switch {
		case len(handles) == 1:
			return tableOf(handles[0], files[0])
		case len(handles) == 0:
			return search(names())
		}
		return nil, &LoadError{Library: files[0], Err: fmt.Errorf("%w: %s is there too", ErrSecond, strings.Join(files[1:], ", "))}
	}
	h, _ := open(path, true)
	for i := range handles {
		if handles[i] != h {
			return nil, &LoadError{Library: path, Err: fmt.Errorf("%w: the process has %s; use that, or a process of its own", ErrSecond, files[i])}
		}
	}
	h, why := open(path, false)
	if h == 0 {
		return nil, &LoadError{Library: path, Err: errors.New(strings.TrimPrefix(why, path+": "))}
	}
	return tableOf(h, path)
}

// Adopt gives the runtime of an engine's own handle from dlopen.
func Adopt(handle uintptr) (*Table, error) {
	if !Built {
		return nil, &LoadError{Err: ErrBuild}
	}
	if err := checkHandle(handle); err != nil {
		return nil, &LoadError{Err: err}
	}
	file := where(handle)
	if file == "" {
		return nil, &LoadError{Err: fmt.Errorf("the handle %#x has no hipRuntimeGetVersion: it is no HIP runtime", handle)}
	}
	handles, files := resident()
	for i := range handles {
		if files[i] != file {
			return nil, &LoadError{Library: file, Err: fmt.Errorf("%w: the process has %s too", ErrSecond, files[i])}
		}
	}
	return tableOf(handle, file)
}

// checkHandle keeps from dlsym what would crash it.
func checkHandle(handle uintptr) error {
	switch {
	case handle == 0:
		return errors.New("the handle is 0, which dlopen returns when it opens nothing")
	case !given(handle):
		return fmt.Errorf("the handle %#x is none that dlopen has given, or its library is closed", handle)
	}
	return nil
}

func search(tried []string) (*Table, error) {
	for _, name := range tried {
		h, why := open(name, false)
		if h != 0 {
			return tableOf(h, name)
		}
		if !strings.HasPrefix(why, name+": cannot open shared object file: No such file") {
			return nil, &LoadError{Library: name, Err: errors.New(strings.TrimPrefix(why, name+": "))}
		}
	}
	return nil, &LoadError{Err: fmt.Errorf("no HIP runtime: tried %s; install ROCm's, or name its libamdhip64", strings.Join(tried, ", "))}
}

// oldest is HIP 5.2: what the layouts and the required entry points were compared with.
const oldest = 50_200_000

func tableOf(handle uintptr, path string) (*Table, error) {
	file := where(handle)
	if file == "" {
		file = path
	}
	t, missing, code := load(handle)
	return Check(t, missing, code, file)
}

// Check makes one error of what New returned.
func Check(t *Table, missing string, code int, file string) (*Table, error) {
	switch {
	case missing != "":
		return nil, &LoadError{Library: file, Symbol: missing}
	case code != 0:
		return nil, &LoadError{Library: file, Err: fmt.Errorf("hipRuntimeGetVersion: code %d", code)}
	case t.Version() < oldest:
		return nil, &LoadError{Library: file, Err: fmt.Errorf("it is HIP %d.%d; 5.2 or newer is needed", t.Version()/10_000_000, t.Version()/100_000%100)}
	}
	return t, nil
}
