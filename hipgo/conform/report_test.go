package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() Report {
	return Report{
		Format: 1, Device: "AMD Radeon", Arch: "gfx1151", PCI: "0000:c5:00.0", HIP: "7.15.26333",
		Library: "/opt/rocm/lib/libamdhip64.so.7", OS: "linux/amd64, Debian", Kernel: "6.1.0", Bound: 2 * time.Second,
		Checks: []Check{
			{Name: "order", Result: Pass, Seen: "in order", Took: 1500 * time.Microsecond},
			{Name: "release-stream-write", Result: Known, Seen: "not released", Report: reportStreamWrite, Took: 2 * time.Second},
			{Name: "queue-cumask", Result: Unsupported, Seen: "no such symbol"},
			{Name: "wait64-eq", Result: Fail, Seen: "not done within 12s", Parked: []string{"plain stream 1 until word 3 equals 0x7"}, Took: 14 * time.Second},
		},
	}
}

func TestReceiptIsTheSameTextEachTime(t *testing.T) {
	const want = `hipfabric conform, format 1
device   AMD Radeon
arch     gfx1151
pci      0000:c5:00.0
hip      7.15.26333
library  /opt/rocm/lib/libamdhip64.so.7
os       linux/amd64, Debian
kernel   6.1.0
bound    2s
pass         order                         1.5 ms  in order
known        release-stream-write       2000.0 ms  not released [https://github.com/ROCm/rocm-systems/issues/11605]
unsupported  queue-cumask                  0.0 ms  no such symbol
fail         wait64-eq                 14000.0 ms  not done within 12s
               plain stream 1 until word 3 equals 0x7
1 passed, 1 failed, 1 known, 1 unsupported
`
	assert.Equal(t, want, sample().String())
}

func TestReceiptComesBackFromJSON(t *testing.T) {
	b, err := sample().JSON()
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, sample(), back)
}

func TestReportIsOKOnlyWhenSomethingRanAndNothingFailed(t *testing.T) {
	assert.False(t, sample().OK())
	assert.False(t, Report{}.OK())
	passed := sample()
	passed.Checks = passed.Checks[:3]
	assert.True(t, passed.OK())
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Result
	}{
		{nil, Pass},
		{errors.New("broken"), Fail},
		{known(reportCapture, "seen %d", 1), Known},
		{fmt.Errorf("call 3: %w", known(reportCapture, "seen")), Known},
		{unsupported("a %s", "thing"), Unsupported},
	} {
		var got Check
		verdict(&got, "all well", c.err)
		assert.Equal(t, c.want, got.Result, "%v", c.err)
		assert.NotContains(t, got.Seen, "\n")
		assert.NotEmpty(t, got.Seen)
	}
}

func TestEveryCheckHasANameOfItsOwnThatFitsTheReceipt(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		assert.False(t, seen[name], name)
		seen[name] = true
		assert.LessOrEqual(t, len(name), 24)
		assert.Equal(t, strings.ToLower(name), name)
	}
}

func TestSystemIsNamed(t *testing.T) {
	name, kernel := system()
	assert.NotEmpty(t, name)
	assert.NotEmpty(t, kernel)
}
