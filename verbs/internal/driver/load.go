package driver

import (
	"errors"
	"fmt"
	"strings"
)

// Name is what the system's linker looks for.
const Name = "libibverbs.so.1"

// LoadError is a libibverbs that could not be had.
type LoadError struct {
	Library string // the file
	Symbol  string // the required entry point that it lacks, with its version, or ""
	Err     error  // why, where it is no missing symbol
}

func (e *LoadError) Error() string {
	if e.Symbol != "" {
		return fmt.Sprintf("verbs: %s lacks %s: is it libibverbs, of rdma-core 2.0 or newer?", e.Library, e.Symbol)
	}
	return fmt.Sprintf("verbs: %s: %v", e.Library, e.Err)
}

// Unwrap gives the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// Is makes all of them errors.ErrUnsupported.
func (e *LoadError) Is(target error) bool { return target == errors.ErrUnsupported }

// Load gives the libibverbs of path; with path "" that which the system's linker finds.
func Load(path string) (Table, error) {
	named := path != ""
	if !named {
		path = Name
	}
	if !Built {
		return nil, &LoadError{Library: path, Err: ErrBuild}
	}
	h, why := open(path)
	if h == 0 {
		why = strings.TrimPrefix(why, path+": ")
		if !named {
			why += "; install rdma-core (Debian: libibverbs1 and ibverbs-providers)"
		}
		return nil, &LoadError{Library: path, Err: errors.New(why)}
	}
	l, missing, e := load(h)
	switch {
	case missing != "":
		return nil, &LoadError{Library: path, Symbol: missing}
	case e != 0:
		return nil, &LoadError{Library: path, Err: e}
	}
	return l, nil
}
