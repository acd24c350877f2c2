package hipfabric

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/fabric"
)

func serving(t *testing.T, path string, s Status) *statusServer {
	server, err := listenStatus(path)
	require.NoError(t, err)
	server.serve(func() Status { return s }, func() {})
	t.Cleanup(server.close)
	return server
}

func TestAStatusSocketIsItsOwnersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	want := Status{Schema: StatusSchema, Group: "g", Rank: 1, World: 2, Paths: []Path{{Name: "tcp", Chosen: true, Reason: "r"}},
		Ranks: []RankStatus{{Rank: 0, WaitingFor: []int{1}}}, Peers: []PeerBytes{{Peer: 0, Moved: Moved{SentBytes: 5}}}}
	serving(t, path, want)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	for range 3 {
		got, err := ReadStatus(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary name is left")
}

func TestALiveStatusSocketIsRefusedAndAStaleOneReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := serving(t, path, Status{Schema: StatusSchema, Group: "first"})
	_, err := listenStatus(path)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, path+" is served by a living process")
	require.NoError(t, first.listener.Close(), "as a killed process leaves it")
	serving(t, path, Status{Schema: StatusSchema, Group: "second"})
	got, err := ReadStatus(t.Context(), path)
	require.NoError(t, err)
	assert.Equal(t, "second", got.Group)
}

func TestAStatusSocketNeverReplacesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := listenStatus(path)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, path+" exists and is no socket")
	_, err = listenStatus(filepath.Join(path, "below"))
	assert.ErrorIs(t, err, fabric.ErrInvalid)
}

func TestAClosedStatusSocketIsGoneUnlessAnotherTookItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	server, err := listenStatus(path)
	require.NoError(t, err)
	server.close()
	assert.NoFileExists(t, path)
	server, err = listenStatus(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	server.close()
	assert.FileExists(t, path)
}

func TestReadingStatusSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadStatus(t.Context(), filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, "is a group with this StatusSocket running?")

	other := filepath.Join(dir, "other")
	serving(t, other, Status{Schema: "hipfabric.status/2"})
	_, err = ReadStatus(t.Context(), other)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	assert.ErrorContains(t, err, `"hipfabric.status/2"`)

	mute := filepath.Join(dir, "mute")
	l, err := net.Listen("unix", mute)
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = ReadStatus(ctx, mute)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRatesAreOverTheLastSamples(t *testing.T) {
	begun := time.Now()
	at := func(seconds int, calls, bytes, sent uint64) sample {
		return sample{at: begun.Add(time.Duration(seconds) * time.Second), calls: map[int]uint64{0: calls, 1: 2 * calls},
			stats: fabric.Stats{Calls: calls, Bytes: bytes, CallNs: calls * 1e6, Transport: fabric.TransportStats{
				Peers: []fabric.PeerStats{{Peer: 1, SentBytes: sent, ReceivedBytes: 2 * sent,
					Rails: []fabric.RailStats{{Name: "eth1 10.0.1.1-10.0.1.2", Lanes: 4, Lost: 1, SentBytes: sent, ReceivedBytes: 2 * sent, Retransmits: 3, RoundTrip: 250 * time.Microsecond}}}}}}}
	}
	var r rates
	r.add(at(0, 0, 0, 0))
	r.add(at(1, 100, 0, 0))
	r.add(at(2, 200, 1000, 500))
	s := Status{Ranks: []RankStatus{{Rank: 0, Calls: 400}, {Rank: 1, Calls: 800}}}
	s.fill(at(3, 400, 3000, 700), r.base())
	assert.Equal(t, int64(2000), s.RatesOverMs)
	assert.InDelta(t, 150, s.CallsPerSecond, 1e-9)
	assert.InDelta(t, 1500, s.BytesPerSecond, 1e-9)
	assert.InDelta(t, 0.15, s.InCallsFraction, 1e-9)
	assert.InDelta(t, 300, s.Ranks[1].CallsPerSecond, 1e-9)
	assert.Equal(t, []PeerBytes{{Peer: 1, Moved: Moved{SentBytes: 700, ReceivedBytes: 1400, SentBytesPerSecond: 350, ReceivedBytesPerSecond: 700},
		Rails: []RailBytes{{Name: "eth1 10.0.1.1-10.0.1.2", Lanes: 4, Lost: 1, Moved: Moved{SentBytes: 700, ReceivedBytes: 1400, SentBytesPerSecond: 350, ReceivedBytesPerSecond: 700},
			Retransmits: 3, RoundTripUs: 250}}}}, s.Peers)
}
