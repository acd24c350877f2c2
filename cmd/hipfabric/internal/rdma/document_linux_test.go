package rdma

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/verbs/verbstest"
)

// golden is what a document of two hosts looks like; with HIPFABRIC_TEST_GOLDEN=write it is written anew.
const golden = "testdata/two-hosts.json"

// TestTheDocumentOfTwoHosts compares all of a report but what differs from run to run.
func TestTheDocumentOfTwoHosts(t *testing.T) {
	l := newLab(t, verbstest.DeadRail(2, 2, 1))
	near, far := l.hosts[0], l.hosts[1]
	near.write(".dockerenv", "")
	near.write(port1+"/hw_counters/local_ack_timeout_err", "7")
	far.sys.Limits = func() (int64, int64, bool) { return 8 << 20, NoLimit, true }
	far.interfaces[0].MTU = 1500
	require.NoError(t, far.verbs.HCA(0).MTU(1024))
	l.sooner(func() {
		near.write(port1+"/counters/port_xmit_data", "5096")
		far.write(port1+"/hw_counters/out_of_sequence", "3")
	})
	r := l.meet(l.told())
	require.Empty(t, r.Meeting.CutShort)
	still(r)
	text, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if os.Getenv("HIPFABRIC_TEST_GOLDEN") == "write" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, text, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text))
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var again Report
	require.NoError(t, d.Decode(&again))
	assert.Equal(t, *r, again, "the document has all")
}

// still replaces times, ports and the texts of failures.
func still(r *Report) {
	fixed := func(t *Trips) {
		if t.Samples > 0 {
			t.MinUs, t.P50Us, t.P99Us, t.MaxUs = 1.9, 2.25, 4.75, 11.5
		}
	}
	r.Date = "2026-01-02T03:04:05Z"
	r.Meeting.Peer, r.Meeting.FarCommand = "10.77.0.2:7999", "hipfabric doctor rdma --listen 10.77.0.2:7999"
	r.Meeting.Address, r.Meeting.FarAddress = "10.77.0.1", "10.77.0.2"
	for _, h := range []*Host{&r.Host, r.Meeting.Far} {
		for _, p := range h.ports() {
			if t := p.port.SelfTest; t != nil {
				fixed(&t.Trips)
				if t.Failed != "" {
					t.Failed = "message 1 of 20, 65536 bytes: transport retry counter exceeded"
				}
			}
		}
	}
	for i := range r.Meeting.Rails {
		rail := &r.Meeting.Rails[i]
		for j := range rail.Trips {
			fixed(&rail.Trips[j])
		}
		if rail.Failed != "" {
			rail.Failed = "this host: message 1 of 200, 16 bytes: transport retry counter exceeded"
		}
	}
	r.Reach = []Reach{{Peer: "10.77.0.2", From: "10.77.0.1", Interface: "ethmem0", Device: "mem0", Port: 1, Subnet: "10.77.0.0/24", Neighbour: "answers", Answers: true, Size: 4160, Fits: TooLarge, PathMTU: 1500}}
	r.Findings = Findings(r)
}
