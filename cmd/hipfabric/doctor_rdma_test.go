//go:build unix

package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/rdma"
)

// nowhere is a libibverbs that is on no host.
const nowhere = "/nowhere/libibverbs.so.1"

func rdmaDocument(t *testing.T, out, stderr string) (r rdma.Report) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), "%s%s", out, stderr)
	assert.False(t, d.More(), "one document")
	assert.Equal(t, rdma.Schema, r.Schema)
	return r
}

func rdmaCodes(r rdma.Report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Code)
		for _, m := range f.Mend {
			if strings.TrimSpace(m) == "" {
				list = append(list, f.Code+" has a blank command")
			}
		}
	}
	return list
}

// TestDoctorRdmaRunsOnThisHost takes it as it is: with RDMA or without.
func TestDoctorRdmaRunsOnThisHost(t *testing.T) {
	code, out, stderr := runs(t, "doctor", "rdma", "--json")
	r := rdmaDocument(t, out, stderr)
	assert.NotEmpty(t, r.Host.OS)
	kernel, _ := os.ReadDir("/sys/class/infiniband")
	assert.GreaterOrEqual(t, len(r.Host.Devices), len(kernel))
	if len(kernel) > 0 {
		t.Skip("there is an RDMA device here: what is wrong with it is not for a test to say")
	}
	assert.Equal(t, exitEnvironment, code)
	assert.Contains(t, stderr, "of severity error")
	assert.Subset(t, []string{"no-device", "no-library", "bare-build", "wsl", "unsupported-system", "driver-not-loaded", "not-listed"}, rdmaCodes(r))
	if runtime.GOOS == "linux" {
		assert.True(t, r.Host.Memlock.Told)
		assert.NotEmpty(t, r.Host.Modules)
	}
	code, out, _ = runs(t, "doctor", "rdma", "--peer", "127.0.0.1")
	assert.Equal(t, exitEnvironment, code)
	for _, want := range []string{"this host", "libibverbs", "memlock", "devices       none", "127.0.0.1", "error ", "bound: ", "why: ", "mend: "} {
		assert.Contains(t, out, want)
	}
}

func TestDoctorRdmaWithoutALibrarySaysSo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no system but Linux has one")
	}
	code, out, stderr := runs(t, "doctor", "rdma", "--json", "--library", nowhere)
	assert.Equal(t, exitEnvironment, code)
	r := rdmaDocument(t, out, stderr)
	assert.Contains(t, []string{"no-library", "bare-build"}, r.Findings[0].Code)
	assert.Contains(t, r.Host.NoLibrary, nowhere)
}

func TestTwoHostsWithoutRDMAMeet(t *testing.T) {
	key := secretFile(t)
	address := "127.0.0.1:" + freePort(t)
	far := begin(t, "doctor", "rdma", "--listen", address, "--secret-file", key, "--library", nowhere)
	far.stderr.await(t, "waiting at "+address)
	assert.Contains(t, far.stderr.String(), "hipfabric doctor rdma "+address+" --secret-file "+key)
	for range 2 { // one peer after the other
		_, out, stderr := runs(t, "doctor", "rdma", address, "--json", "--secret-file", key, "--library", nowhere)
		r := rdmaDocument(t, out, stderr)
		require.NotNil(t, r.Meeting)
		require.NotNil(t, r.Meeting.Far, "%+v", r.Meeting)
		assert.Equal(t, []string{"127.0.0.1", "127.0.0.1", ""}, []string{r.Meeting.Address, r.Meeting.FarAddress, r.Meeting.CutShort})
		assert.Contains(t, rdmaCodes(r), "same-host")
	}
	code, out, stderr := runs(t, "doctor", "rdma", address, "--secret-file", secretFile(t), "--json", "--library", nowhere)
	assert.Equal(t, exitEnvironment, code, stderr)
	assert.Contains(t, rdmaCodes(rdmaDocument(t, out, stderr)), rdma.Unauthorized)
	require.NoError(t, far.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, exitOK, far.code(), "an interrupt is how it ends")
	assert.Equal(t, 2, strings.Count(far.stdout.String(), "asked by 127.0.0.1"))
}

func TestOnceIsOnePeerOfDoctorRdma(t *testing.T) {
	address := "127.0.0.1:" + freePort(t)
	far := begin(t, "doctor", "rdma", "--listen", address, "--once")
	far.stderr.await(t, "waiting at "+address)
	_, out, _ := runs(t, "doctor", "rdma", address)
	assert.Contains(t, out, rdma.ThePeer)
	assert.Contains(t, out, "note same-host")
	assert.Equal(t, exitOK, far.code())
}

func TestBadDoctorRdmaLinesGetOneClearLine(t *testing.T) {
	for line, want := range map[string]string{
		"doctor rdmaa":                                         "did you mean rdma?",
		"doctor rdma 127.0.0.1 127.0.0.2":                      "written --peer 127.0.0.2",
		"doctor rdma 127.0.0.1 --listen 127.0.0.1":             "give one of the two",
		"doctor rdma --once":                                   "--once belongs to --listen",
		"doctor rdma --timeout 0s":                             "--timeout is 0s; it must be above 0",
		"doctor rdma --listen 127.0.0.1 --json":                "--json belongs to the asking host",
		"doctor rdma --listen 127.0.0.1 --peer 127.0.0.1":      "--peer belongs to the asking host",
		"doctor rdma --device mlx5_0,":                         "--device has an empty name",
		"doctor rdma --peer 10.0.0.1:5":                        "without port",
		"doctor rdma --peer 10.0.0.0/8":                        "is no host",
		"doctor rdma --listen 10.1.1.1":                        "run hipfabric keygen",
		"doctor rdma 10.1.1.1":                                 "run hipfabric keygen",
		"doctor rdma --listen 0.0.0.0 --insecure":              "would bind every address",
		"doctor rdma 127.0.0.1:99999":                          "outside 1..65535",
		"doctor rdma 127.0.0.1 --secret-file /none":            "/none",
		"doctor rdma --listen 198.51.100.7 --insecure":         "is no address of this host",
		"doctor rdma --peer " + strings.Repeat("a,", 64) + "a": "--peer names 65 addresses; at most 64",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, err := command(strings.Fields(line)...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, out)
			assert.Contains(t, err, want)
		})
	}
}
