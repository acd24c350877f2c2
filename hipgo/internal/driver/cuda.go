package driver

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSecondCUDA is that of a driver beside the one that the process uses.
var ErrSecondCUDA = errors.New("a second CUDA driver in one process")

// cudaNames are where the driver is looked for; the last is where Windows puts it in its Linux.
func cudaNames() []string { return []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"} }

// LoadCUDA gives HIP's table over the CUDA driver of path; with path "" over that which the process already has, else the
// first that is found. code is what initialising it returned, where that is what failed; file is what was loaded.
func LoadCUDA(path string) (t *Table, file string, code int, err error) {
	if !Built {
		return nil, path, 0, &LoadError{Library: path, Err: ErrBuild}
	}
	if path != "" {
		h, why := open(path, false)
		if h == 0 {
			return nil, path, 0, &LoadError{Library: path, Err: fmt.Errorf("%w: %s", errors.ErrUnsupported, strings.TrimPrefix(why, path+": "))}
		}
		return cudaOf(h, path)
	}
	for _, name := range cudaNames() {
		h, why := open(name, false)
		if h != 0 {
			return cudaOf(h, name)
		}
		if !strings.HasPrefix(why, name+": cannot open shared object file: No such file") {
			return nil, name, 0, &LoadError{Library: name, Err: fmt.Errorf("%w: %s", errors.ErrUnsupported, strings.TrimPrefix(why, name+": "))}
		}
	}
	return nil, "", 0, &LoadError{Err: fmt.Errorf("no CUDA driver: tried %s; install NVIDIA's, or name its libcuda.so.1: %w", strings.Join(cudaNames(), ", "), errors.ErrUnsupported)}
}

// AdoptCUDA is LoadCUDA over an engine's own handle from dlopen.
func AdoptCUDA(handle uintptr) (t *Table, file string, code int, err error) {
	if !Built {
		return nil, "", 0, &LoadError{Err: ErrBuild}
	}
	if err := checkHandle(handle); err != nil {
		return nil, "", 0, &LoadError{Err: err}
	}
	if cudaWhere(handle) == "" {
		return nil, "", 0, &LoadError{Err: fmt.Errorf("the handle %#x has no cuInit: it is no CUDA driver: %w", handle, errors.ErrUnsupported)}
	}
	return cudaOf(handle, "")
}

func cudaOf(handle uintptr, path string) (*Table, string, int, error) {
	file := cudaWhere(handle)
	if file == "" {
		file = path
	}
	t, missing, code, second := cudaLoad(handle)
	switch {
	case second:
		return nil, file, 0, &LoadError{Library: file, Err: fmt.Errorf("%w: the process uses another already", ErrSecondCUDA)}
	case missing != "":
		return nil, file, 0, &LoadError{Library: file, Err: fmt.Errorf("it lacks %s, which every driver from CUDA 11.7 (515) on has: %w", missing, errors.ErrUnsupported)}
	}
	return t, file, code, nil
}
