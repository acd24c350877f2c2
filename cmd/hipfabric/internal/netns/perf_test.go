//go:build linux && !race

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
	_, err := exec.LookPath("go")
	require.NoError(t, err, "HIPFABRIC_BIN names no binary of hipfabric, so it is built")
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

// few have all of that in fewer layouts, for what takes long.
func few() []layout {
	return []layout{
		{name: "a cable with MTU 1500", hosts: 2, nets: []Net{{V4: true}}},
		{name: "two cables with MTU 1500 and 9000, IPv6 only", hosts: 2, nets: []Net{{Number: 1, V6: true}, {Number: 2, V6: true, MTU: 9000}}},
		{name: "four hosts on a switch with MTU 9000", hosts: 4, nets: []Net{{V4: true, MTU: 9000}}},
		unequal(),
	}
}

// Its binary is the same under the race detector, which therefore leaves this test out.
func TestTheSuiteOfPerfPassesBetweenHosts(t *testing.T) {
	bin := built(t)
	for _, l := range few() {
		t.Run(l.name, func(t *testing.T) {
			s := l.build(t)
			out := s.perf(t, bin, patience, "--suite")
			assert.True(t, strings.HasSuffix(strings.TrimSpace(out), "PASS"), "%s", out)
		})
	}
}
