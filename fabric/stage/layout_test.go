package stage

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The header asserts its own offsets in C; what it asserts is what Go has.
func TestTheLayoutIsTheHeaders(t *testing.T) {
	header, err := os.ReadFile("../../csrc/mailbox/mailbox.h")
	require.NoError(t, err)
	number := func(pattern string) int {
		m := regexp.MustCompile(pattern).FindSubmatch(header)
		require.NotNil(t, m, pattern)
		n, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		return n
	}
	at := func(name, field string) int { return number(`HF_AT\(` + name + `, ` + field + `, (\d+)\)`) }
	size := func(name string) int { return number(`HF_ASSERT\(sizeof\(struct ` + name + `\) == (\d+)\)`) }
	assert.Equal(t, map[string]int{
		"ready": at("hf_host", "ready"), "descriptor": at("hf_host", "descriptor"), "done": at("hf_host", "done"), "abort": at("hf_host", "abort"),
		"failed": at("hf_host", "failed"), "host": size("hf_host"), "device": size("hf_device"), "piece": size("hf_piece"), "args": size("hf_args"),
	}, map[string]int{
		"ready": readyAt, "descriptor": descriptorAt, "done": doneAt, "abort": abortAt, "failed": failedAt, "host": hostWordBytes,
		"device": deviceWordBytes, "piece": pieceBytes, "args": argBytes,
	})
	for field, offset := range map[string]int{"device": argDevice, "host": argHost, "slab": argSlab, "window": argWindow, "memory": argMemory,
		"bytes": argBytesOf, "stride": argStride, "pitch": argPitch, "list": argList, "timeout": argTimeout, "descriptor": argDescriptor,
		"lengths": argLengths, "lengths_at": argLengthsAt, "pieces": argPieces, "world": argWorld, "clock": argClock, "back": argBack} {
		assert.Equal(t, at("hf_args", field), offset, field)
	}
	assert.Equal(t, number(`HF_RING = (\d+)`), ringSlots)
	assert.Equal(t, number(`HF_REASON_SHIFT = (\d+)`), reasonShift)
	assert.Equal(t, number(`HF_REASON_CALL = (\d+)`), reasonCall)
	assert.Equal(t, number(`HF_REASON_RELEASED = (\d+)`), reasonReleased)
	assert.Equal(t, number(`HF_WINDOWS = (\d+)`), heldBack)
}
