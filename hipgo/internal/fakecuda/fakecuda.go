// Package fakecuda builds, for tests, a libcuda.so.1 that is the software HIP device under the CUDA driver's calls and rules. It
// takes PTX for its kernels' names and runs csrc/mailbox's by their host build: what it proves is how they are loaded, launched and
// waited for, not that the PTX assembles or what its code does.
// It needs a C compiler and this module's source tree.
package fakecuda

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build compiles the driver into dir and gives its path. root is the module's folder.
func Build(root, dir string) (string, error) {
	sources, err := filepath.Glob(filepath.Join(root, "csrc/softhip/*.c"))
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("fakecuda: no csrc/softhip in %s (%w)", root, err)
	}
	return compile(root, dir, append(sources, filepath.Join(root, "csrc/mailbox/twin.c"))...)
}

// BuildOld compiles a driver of before CUDA 11.7, without cuStreamWaitValue64_v2 and without a device behind it.
func BuildOld(root, dir string) (string, error) { return compile(root, dir, "-DOLD_DRIVER") }

func compile(root, dir string, more ...string) (string, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	library := filepath.Join(dir, "libcuda.so.1")
	args := []string{"-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1", "-o", library}
	args = append(append(args, filepath.Join(root, "hipgo/internal/fakecuda/testdata/fakecuda.c")), more...)
	args = append(args, "-ldl", "-pthread")
	if said, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("fakecuda: %w\n%s", err, said)
	}
	return library, nil
}
