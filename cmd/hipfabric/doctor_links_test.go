//go:build unix

package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/cmd/hipfabric/internal/doctor"
)

// listening starts the far end and waits until it can be asked.
func listening(t *testing.T, args ...string) (p *program, address string) {
	t.Helper()
	address = "127.0.0.1:" + freePort(t)
	p = begin(t, append([]string{"doctor", "links", "--listen", address}, args...)...)
	p.stderr.await(t, "waiting at "+address)
	return p, address
}

// asked runs the near end with short measurements and reads its document.
func asked(t *testing.T, address string, args ...string) (code int, r doctor.Report) {
	t.Helper()
	code, out, stderr := runs(t, append([]string{"doctor", "links", "--json", "--time", "50ms", "--peer", address}, args...)...)
	return code, document(t, out, stderr)
}

func document(t *testing.T, out, stderr string) (r doctor.Report) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), "%s%s", out, stderr)
	assert.False(t, d.More(), "one document")
	assert.Equal(t, doctor.Schema, r.Schema)
	return r
}

func secretFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "key")
	code, _, stderr := command("keygen", file)
	require.Equal(t, exitOK, code, stderr)
	return file
}

func codes(r doctor.Report) (list []string) {
	for _, f := range r.Findings {
		list = append(list, f.Code)
	}
	return list
}

func TestDoctorMeasuresBothWays(t *testing.T) {
	key := secretFile(t)
	far, address := listening(t, "--secret-file", key)
	assert.Contains(t, far.stderr.String(), "hipfabric doctor links --peer "+address+" --secret-file "+key)
	for range 2 { // one peer after the other
		code, r := asked(t, address, "--secret-file", key)
		require.Equal(t, exitOK, code, "%+v", r)
		require.NotNil(t, r.Far)
		assert.Equal(t, []string{"127.0.0.1", "127.0.0.1"}, []string{r.Near.Address, r.Far.Address})
		require.Len(t, r.Trips, 2)
		for i, wait := range []string{doctor.Spinning, doctor.Blocking} {
			trip := r.Trips[i]
			assert.Equal(t, wait, trip.Wait)
			assert.Positive(t, trip.Samples)
			assert.True(t, 0 < trip.MinUs && trip.MinUs <= trip.P50Us && trip.P50Us <= trip.P99Us && trip.P99Us <= trip.MaxUs, "%+v", trip)
		}
		require.Len(t, r.Rates, 8)
		for i, rate := range r.Rates {
			assert.Equal(t, []int{1, 1, 2, 2, 4, 4, 8, 8}[i], rate.Lanes)
			assert.Equal(t, []string{doctor.ToPeer, doctor.FromPeer}[i%2], rate.Direction)
			assert.Positive(t, rate.Bytes)
			assert.InEpsilon(t, float64(rate.Bytes)/rate.Seconds/1e9, rate.GBps, 0.01)
			assert.InEpsilon(t, 8*rate.GBps, rate.Gbps, 0.01)
			assert.False(t, rate.Stalled)
		}
		assert.Contains(t, codes(r), "same-host")
	}
	require.NoError(t, far.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, exitOK, far.code(), "an interrupt is how it ends")
	assert.Equal(t, 2, strings.Count(far.stdout.String(), "measured by 127.0.0.1"))
}

func TestDoctorWritesTablesForPeople(t *testing.T) {
	far, address := listening(t, "--once")
	code, out, stderr := runs(t, "doctor", "links", "--time", "20ms", "--lanes", "1,3", "--peer", address)
	require.Equal(t, exitOK, code, "%s%s", out, stderr)
	for _, want := range []string{"this host", "peer " + address, "interface", "MTU", "both ends spinning", "both ends blocking", "p99", "to peer", "from peer", "GB/s", "Gb/s", "note same-host", "bound: "} {
		assert.Contains(t, out, want)
	}
	assert.Equal(t, exitOK, far.code())
}

func TestDoctorTellsWhyThePeerIsNotReached(t *testing.T) {
	key, other := secretFile(t), secretFile(t)
	_, running := listening(t, "--secret-file", key)
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = stranger.Close() })
	go func() {
		for {
			c, err := stranger.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(strings.Repeat("SSH-2.0-x\r\n", 20)))
			_ = c.Close()
		}
	}()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the system answers for a program that does not
	require.NoError(t, err)
	t.Cleanup(func() { _ = mute.Close() })
	for kind, c := range map[string]struct {
		address string
		exit    int
	}{
		doctor.Refused:      {"127.0.0.1:" + freePort(t), exitFailed},
		doctor.Unauthorized: {running, exitEnvironment},
		doctor.Stranger:     {stranger.Addr().String(), exitFailed},
		doctor.Mute:         {mute.Addr().String(), exitFailed},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			code, r := asked(t, c.address, "--secret-file", other)
			assert.Equal(t, c.exit, code)
			require.NotNil(t, r.NotReached)
			assert.Equal(t, kind, r.NotReached.Kind, "%+v", r.NotReached)
			assert.Equal(t, []string{kind}, codes(r))
			assert.NotEmpty(t, r.Findings[0].Mend)
			assert.Nil(t, r.Far)
		})
	}
}

func TestAPeerThatIsMeasuredIsBusyForAnother(t *testing.T) {
	far, address := listening(t)
	first := begin(t, "doctor", "links", "--time", "5s", "--timeout", "2m", "--peer", address)
	far.stdout.await(t, "measured by")
	code, r := asked(t, address)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, []string{doctor.Busy}, codes(r))
	require.NoError(t, first.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, exitFailed, first.code())
	assert.Contains(t, first.stderr.String(), "interrupted")
	assert.Empty(t, first.stdout.String())
	far.stdout.await(t, "a peer did not get to the end")
	code, r = asked(t, address)
	assert.Equal(t, exitOK, code, "the next peer finds it as before: %+v", r)
}

func TestAPeerThatDiesEndsTheMeasurement(t *testing.T) {
	far, address := listening(t)
	near := begin(t, "doctor", "links", "--json", "--time", "5s", "--timeout", "2m", "--peer", address)
	far.stdout.await(t, "measured by")
	require.NoError(t, far.cmd.Process.Signal(syscall.SIGKILL))
	began := time.Now()
	assert.Equal(t, exitFailed, near.code())
	assert.Less(t, time.Since(began), time.Minute)
	r := document(t, near.stdout.String(), near.stderr.String())
	assert.Contains(t, codes(r), "cut-short")
	assert.NotEmpty(t, r.CutShort)
}

func TestAPeerThatStopsEndsByTheTimeout(t *testing.T) {
	far, address := listening(t)
	near := begin(t, "doctor", "links", "--json", "--time", "1s", "--timeout", "12s", "--peer", address)
	far.stdout.await(t, "measured by")
	require.NoError(t, far.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = far.cmd.Process.Signal(syscall.SIGCONT) }()
	assert.Equal(t, exitFailed, near.code())
	assert.Contains(t, codes(document(t, near.stdout.String(), near.stderr.String())), "cut-short")
}

func TestBadDoctorLinesGetOneClearLine(t *testing.T) {
	for line, want := range map[string]string{
		"doctor":                "doctor needs a subject",
		"doctor link":           "did you mean links?",
		"doctor links 10.0.0.1": "an address is written --peer 10.0.0.1",
		"doctor links":          "give either --listen",
		"doctor links --peer 127.0.0.1 --listen 127.0.0.1":  "give either --listen",
		"doctor links --peer 127.0.0.1 --once":              "--once belongs to --listen",
		"doctor links --listen 127.0.0.1 --time 1s":         "--time belongs to --peer",
		"doctor links --listen 10.1.1.1":                    "run hipfabric keygen",
		"doctor links --peer 10.1.1.1":                      "run hipfabric keygen",
		"doctor links --listen 0.0.0.0 --insecure":          "would bind every address",
		"doctor links --listen :7999 --insecure":            "has no host",
		"doctor links --peer 127.0.0.1 --lanes 9":           "--lanes has 9, outside 1..8",
		"doctor links --peer 127.0.0.1 --lanes 0":           "--lanes has 0, outside 1..8",
		"doctor links --peer 127.0.0.1 --time 0s":           "--time is 0s, outside",
		"doctor links --peer 127.0.0.1 --timeout 1s":        "--timeout is 1s, and the measurements alone take 5s",
		"doctor links --peer 127.0.0.1 --secret-file /none": "/none",
		"doctor links --listen 198.51.100.7 --insecure":     "is no address of this host",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, err := command(strings.Fields(line)...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, out)
			assert.Contains(t, err, want)
		})
	}
}

func TestTheVerdictGivesTheCode(t *testing.T) {
	for want, findings := range map[int][]doctor.Finding{
		exitOK:          {{Code: "loss", Severity: doctor.Warning}, {Code: "same-host", Severity: doctor.Note}},
		exitFailed:      {{Code: "loss", Severity: doctor.Error}, {Code: "governor", Severity: doctor.Note}},
		exitEnvironment: {{Code: doctor.Unauthorized, Severity: doctor.Error}},
		exitDesync:      {{Code: doctor.Mismatch, Severity: doctor.Error}},
	} {
		assert.Equal(t, want, exitCode(verdict(&doctor.Report{Findings: findings})), "%+v", findings)
	}
}
