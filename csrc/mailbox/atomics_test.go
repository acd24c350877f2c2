package mailbox_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox"
)

// Stage and collect claim and arrive once each; the mailbox's three claim once, and arrive as they have staged and as they leave.
const least = 2*2 + 3*3

// A bus that does not carry atomics makes wrong numbers of them, without an error. So none is for the host's words: what is
// read, modified and written is the device's own, at its scope.
func TestNoHostWordIsReadModifiedAndWritten(t *testing.T) {
	var calls int
	for _, file := range []string{"mailbox.hip", "calls.hip", "place.h", "sum.h", "region.h", "mailbox.h"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range regexp.MustCompile(`hf_(?:claim|arrive)_device\(([^,]*),`).FindAllSubmatch(source, -1) {
			calls++
			assert.Regexp(t, `^&(device|hf_mailbox_of\(args\)|hf_target_of\(args\))->`, string(call[1]), "%s: %s", file, call[0])
		}
		assert.NotRegexp(t, `__atomic|__hip_atomic|__sync_|asm`, string(source), "%s: what a target needs is in its platform", file)
	}
	require.Equal(t, 6, calls)
	place, err := os.ReadFile("place.h")
	require.NoError(t, err)
	assert.Contains(t, string(place), "HF_PTR(struct hf_mailbox, args->mailbox)", "device memory")

	atomics := regexp.MustCompile(`\b(?:atom|red)\.[\w.]+`).FindAllString(string(mailbox.PTX), -1)
	require.GreaterOrEqual(t, len(atomics), least, "kernels that each claim and arrive")
	for _, a := range atomics {
		assert.Contains(t, a, ".gpu.")
	}
}

// Code objects say no scope that every target spells alike; what the compiler makes them of does.
func TestNoTargetHasAnAtomicOfTheSystemsScope(t *testing.T) {
	clang, err := exec.LookPath("clang++-19")
	if err != nil {
		t.Skip("no clang++-19 here; on Debian: apt-get install clang-19")
	}
	changes := regexp.MustCompile(`(?m)^.* (?:atomicrmw|cmpxchg) .*$`)
	for arch := range targets {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		made, err := exec.CommandContext(ctx, clang, "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch="+arch,
			"-nogpuinc", "-nogpulib", "-O2", "-std=c++17", "-mcode-object-version=5", "-S", "-emit-llvm", "-o", "-", "mailbox.hip").Output()
		require.NoError(t, err, arch)
		found := changes.FindAllString(string(made), -1)
		require.GreaterOrEqual(t, len(found), least, "%s: kernels that each claim and arrive", arch)
		for _, change := range found {
			assert.True(t, strings.Contains(change, ` syncscope("agent`), "%s: %s", arch, change)
		}
	}
}

// An owner of another GPU has code for it by the same recipe.
func TestTheRecipeTakesOtherTargets(t *testing.T) {
	if _, err := exec.LookPath("clang++-19"); err != nil {
		t.Skip("no clang++-19 here; on Debian: apt-get install clang-19 lld-19")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "../../build/kernels.sh", dir, "gfx1200", "gfx906").CombinedOutput()
	require.NoError(t, err, "%s", out)
	image, err := os.ReadFile(dir + "/mailbox.hipfb")
	require.NoError(t, err)
	found := objects(t, image)
	assert.Len(t, found, 2)
	assert.NotEmpty(t, found["gfx1200"])
	assert.NotEmpty(t, found["gfx906"])
}
