//go:build linux && amd64 && !purego && !race

package reduce

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Combine must do, where there is no assembly.
func TestWithoutAssembly(t *testing.T) {
	out, err := exec.Command(testBinary(t, "amd64", "-tags=purego"), "-test.run=Combine|Kernels", "-test.short").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// What Combine must do, by the arm64 kernels.
func TestOnArm64(t *testing.T) {
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("no qemu-aarch64 on PATH (Debian's package qemu-user)")
	}
	out, err := exec.Command(emulator, testBinary(t, "arm64"), "-test.run=Combine|Kernels", "-test.short").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func testBinary(t *testing.T, arch string, flags ...string) string {
	to := filepath.Join(t.TempDir(), "reduce.test")
	build := exec.Command("go", append([]string{"test", "-c", "-o", to}, append(flags, ".")...)...)
	build.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return to
}
