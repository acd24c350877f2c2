package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/measure"
	"github.com/hipfabric/hipfabric/fabric"
)

func planOf(t *testing.T, args ...string) measure.Plan {
	t.Helper()
	var f planFlags
	cmd := &cobra.Command{}
	f.add(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	p, err := f.plan(cmd)
	require.NoError(t, err)
	return p
}

func TestPerfMeasuresByDefaultWhatADecoderCalls(t *testing.T) {
	p := planOf(t)
	assert.Equal(t, []fabric.Op{fabric.AllGather, fabric.AllReduce, fabric.Exchange}, p.Ops)
	assert.Equal(t, []int{16, 4096, 32768, 1 << 20, 4 << 20}, p.Sizes)
	assert.Equal(t, []any{measure.Time, fabric.F32, fabric.Sum, 500, 50, true}, []any{p.Mode, p.DType, p.Reduce, p.Iters, p.Warmup, p.Check})
	assert.NotZero(t, p.Seed)
}

func TestPerfTakesTheFlagsOfNCCLTests(t *testing.T) {
	p := planOf(t, "-b", "8", "-e", "64", "-f", "2", "-w", "7", "--iters", "9", "--op", "all", "--check=false", "--seed", "5")
	assert.Equal(t, []int{8, 16, 32, 64}, p.Sizes)
	assert.Equal(t, []any{7, 9, false, uint64(5)}, []any{p.Warmup, p.Iters, p.Check, p.Seed})
	assert.Len(t, p.Ops, len(fabric.Ops())-1)
	assert.NotContains(t, p.Ops, fabric.Recv)
	assert.Equal(t, []int{32 << 20}, planOf(t, "-f", "2").Sizes, "nccl-tests' own default")
	assert.Equal(t, []int{16}, planOf(t, "-b", "16").Sizes)
}

func TestInPlaceAloneMeansTheOperationsThatHaveIt(t *testing.T) {
	p := planOf(t, "--in-place", "--copy")
	assert.Equal(t, []fabric.Op{fabric.AllGather, fabric.AllReduce}, p.Ops)
	assert.Equal(t, []bool{true, true}, []bool{p.InPlace, p.Copy})
	p = planOf(t, "--in-place", "--op", "all-gather,exchange")
	require.ErrorContains(t, p.Validate(2), "exchange has no form in place; all-gather and all-reduce have")
	p = planOf(t)
	assert.Equal(t, []bool{false, false}, []bool{p.InPlace, p.Copy})
}

func TestAnAddressIsCompletedWithThePort(t *testing.T) {
	for in, want := range map[string]string{"h": "h:7", "h:8": "h:8", "10.0.0.1": "10.0.0.1:7", "fe80::1%eth0": "[fe80::1%eth0]:7", "[::1]": "[::1]:7", "[::1]:9": "[::1]:9"} {
		got, err := withPort(in, 7)
		require.NoError(t, err, in)
		assert.Equal(t, want, got)
	}
	for _, in := range []string{"", ":8", "h:0", "h:65536", "h:x", "a b", "[", "/x"} {
		_, err := withPort(in, 7)
		require.ErrorIs(t, err, fabric.ErrInvalid, in)
	}
}

// A secret or a status socket in the environment makes nobody a rank, and suits whoever the flags say this is.
func TestASecretInTheEnvironmentSuitsTheFlags(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("0123456789abcdef"), 0o600))
	socket := filepath.Join(t.TempDir(), "s")
	t.Setenv("HIPFABRIC_SECRET_FILE", key)
	t.Setenv("HIPFABRIC_STATUS", socket)
	f, cmd := &joinFlags{}, &cobra.Command{}
	f.add(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--rank", "1", "--world", "2", "--master", "10.0.1.1:7"}))
	cfg, err := f.config(cmd)
	require.NoError(t, err)
	assert.Equal(t, []any{1, 2, "10.0.1.1:7", key, socket}, []any{cfg.Rank, cfg.World, cfg.Master, cfg.SecretFile, cfg.StatusSocket})
	t.Setenv("HIPFABRIC_WORLD", "2")
	_, err = f.config(cmd)
	assert.ErrorContains(t, err, "HIPFABRIC_RANK", "a rank that is told in part is told wrong")
}
