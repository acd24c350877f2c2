package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/rdma"
)

// plantedHosts is the document that package rdma's test makes of two planted hosts.
func plantedHosts(t *testing.T) *rdma.Report {
	t.Helper()
	text, err := os.ReadFile("internal/rdma/testdata/two-hosts.json")
	require.NoError(t, err)
	r := &rdma.Report{}
	require.NoError(t, json.Unmarshal(text, r))
	return r
}

// TestTheTextOfTwoHosts compares what a person reads; with HIPFABRIC_TEST_GOLDEN=write it is written anew.
func TestTheTextOfTwoHosts(t *testing.T) {
	const golden = "internal/rdma/testdata/two-hosts.txt"
	var out bytes.Buffer
	require.NoError(t, writeRdma(&out, plantedHosts(t)))
	if os.Getenv("HIPFABRIC_TEST_GOLDEN") == "write" {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), out.String())
}

func TestWhatAPeerSaysOfItsRDMAIsOnlyText(t *testing.T) {
	r := plantedHosts(t)
	r.Meeting.Far.Name = "box\x1b[2J\r\u009b"
	r.Meeting.Far.Devices[0].Name += "\x1b[3J"
	r.Meeting.Far.Devices[0].Ports[0].Counters["a\x1b[4J"] = 1
	r.Meeting.Far.Devices[0].Ports[0].Changes["a\x1b[4J"] = 1
	r.Meeting.Rails[0].Failed = "x\x1b[5J"
	r.Findings = rdma.Findings(r)
	var out bytes.Buffer
	require.NoError(t, writeRdma(&out, r))
	assert.Contains(t, out.String(), "box[2J")
	assert.NotContains(t, out.String(), "\x1b")
	assert.NotContains(t, out.String(), "\u009b")
}

func TestALongTableOfGIDsIsCut(t *testing.T) {
	r := &rdma.Report{Host: rdma.Host{Devices: []rdma.Device{{Name: "mlx5_0", Ports: []rdma.Port{{Number: 1, Chosen: 29, Why: "IPv4"}}}}}}
	p := &r.Host.Devices[0].Ports[0]
	for i := range 30 {
		p.GIDs = append(p.GIDs, rdma.GID{Index: i, Type: "RoCE v2", Address: "fe80::1"})
	}
	var out bytes.Buffer
	require.NoError(t, writeRdma(&out, r))
	assert.Contains(t, out.String(), "yes: IPv4")
	assert.Contains(t, out.String(), "30 in all")
	assert.Equal(t, shownGIDs+1, strings.Count(out.String(), "fe80::1"))
	assert.Contains(t, out.String(), "nothing to mend")
}

func TestARDMAVerdictGivesTheCode(t *testing.T) {
	of := func(host string, codes ...string) (list []doctor.Finding) {
		for _, c := range codes {
			list = append(list, doctor.Finding{Code: c, Severity: doctor.Error, Host: host})
		}
		return list
	}
	for _, c := range []struct {
		want int
		of   []doctor.Finding
	}{
		{exitOK, []doctor.Finding{{Code: "small-mtu", Severity: doctor.Warning}, {Code: "counted", Severity: doctor.Note}}},
		{exitEnvironment, of(rdma.ThisHost, "no-device")},
		{exitEnvironment, of(rdma.ThisHost, "memlock", "no-route")},
		{exitEnvironment, of(rdma.ThePeer, rdma.Unauthorized)},
		{exitFailed, of(rdma.ThePeer, "no-device")},
		{exitFailed, of("", "rail-failed")},
		{exitFailed, of(rdma.ThisHost, "silent-neighbour")},
		{exitFailed, of(rdma.ThePeer, rdma.NotMet)},
		{exitDesync, of(rdma.ThePeer, rdma.Mismatch)},
		{exitWrong, of("", "wrong-bytes", "rail-failed")},
		{exitDevice, of(rdma.ThisHost, "self-test")},
		{exitDevice, of(rdma.ThisHost, "device-failed", "no-port")},
	} {
		assert.Equal(t, c.want, exitCode(rdmaVerdict(&rdma.Report{Findings: c.of})), "%+v", c.of)
	}
}
