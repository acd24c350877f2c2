//go:build linux

package netns

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// built is hipfabric's binary: HIPFABRIC_BIN where somebody has built it, else one of this tree.
func built(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("HIPFABRIC_BIN"); path != "" {
		return path
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go to build hipfabric with, and HIPFABRIC_BIN names no binary of it")
	}
	path := filepath.Join(t.TempDir(), "hipfabric")
	build := exec.Command("go", "build", "-o", path, "github.com/hipfabric/hipfabric/cmd/hipfabric")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// perf runs `hipfabric perf` with args as one rank a host and gives what rank 0 wrote.
func (s *site) perf(t testing.TB, bin string, limit time.Duration, args ...string) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(secret), 0o600))
	port := freshPort()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	outs, errs := make([]strings.Builder, len(s.hosts)), make([]error, len(s.hosts))
	var wg sync.WaitGroup
	for rank, h := range s.hosts {
		cmd := h.Command(ctx, bin, append([]string{"perf", "--rank", fmt.Sprint(rank), "--world", fmt.Sprint(len(s.hosts)), "--secret-file", key,
			"--master", netip.AddrPortFrom(s.reach(rank), port).String()}, args...)...)
		cmd.Stdout, cmd.Stderr = &outs[rank], &outs[rank]
		wg.Go(func() { errs[rank] = cmd.Run() })
	}
	wg.Wait()
	for rank, err := range errs {
		require.NoError(t, err, "rank %d: %s", rank, &outs[rank])
	}
	return outs[0].String()
}

func TestTheSuiteOfPerfPassesBetweenHosts(t *testing.T) {
	if raceDetector {
		t.Skip("the command's binary is the same under the race detector")
	}
	bin := built(t)
	for _, l := range few() {
		t.Run(l.name, func(t *testing.T) {
			s := l.build(t)
			out := s.perf(t, bin, patience, "--suite")
			assert.True(t, strings.HasSuffix(strings.TrimSpace(out), "PASS"), "%s", out)
		})
	}
}
