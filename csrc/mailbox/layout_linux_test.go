//go:build cgo

package mailbox_test

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox/internal/adapters"
	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
	"github.com/hipfabric/hipfabric/fabric"
)

// snake turns a Go field's name into the C field's.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// mirrors fails unless each field of a Go struct lies where C has it, and C has no other.
func mirrors(t *testing.T, c map[string]uint64, name string, a reflect.Type) {
	for i := range a.NumField() {
		f := a.Field(i)
		at, ok := c[name+"."+snake(f.Name)]
		require.True(t, ok, f.Name)
		assert.Equal(t, uint64(f.Offset), at, f.Name)
		delete(c, name+"."+snake(f.Name))
	}
	for other := range c {
		assert.False(t, strings.HasPrefix(other, name+"."), "%s is not in Go", other)
	}
	assert.Equal(t, uint64(a.Size()), c[name])
	assert.LessOrEqual(t, c[name], uint64(128), "what a launch copies cheaply")
}

// What is written down in Go here is what the C compiler made of mailbox.h.
func TestGoAndCAgreeOnTheLayout(t *testing.T) {
	c := twin.Layout()
	mirrors(t, c, "hf_args", reflect.TypeFor[args]())
	for name, want := range map[string]uint64{
		"hf_device": 256, "hf_device.epoch": 0, "hf_device.poison": 64, "hf_device.stage_arrived": 128, "hf_device.collect_arrived": 192,
		"hf_host": 6336, "hf_host.ready": 0, "hf_host.descriptor": 2048, "hf_host.done": 4096, "hf_host.abort": 6144, "hf_host.failed": 6208,
		"hf_host.collected": 6272, "hf_piece": 24, "hf_piece.memory": 0, "hf_piece.slab": 8, "hf_piece.bytes": 16,
		"HF_RING": ring, "HF_WINDOWS": 2, "HF_LINE": 64, "HF_REASON_SHIFT": 56, "HF_FAILED": failed, "HF_SEQUENCE": 1<<56 - 1,
		"HF_REASON_CALL": 1, "HF_REASON_ABORT": 2, "HF_REASON_TIMEOUT": 3, "HF_REASON_RELEASED": 4,
	} {
		assert.Equal(t, want, c[name], name)
	}
}

func TestGoAndCAgreeOnTheRegion(t *testing.T) {
	c := twin.RegionLayout()
	mirrors(t, c, "hf_call", reflect.TypeFor[call]())
	for name, want := range map[string]uint64{
		"HF_RANKS": adapters.Ranks, "HF_SLOTS": adapters.Slots, "HF_STRIPES": adapters.MaxStripes, "HF_PACK": adapters.Pack,
		"HF_GROUP": adapters.ClassGroup, "HF_PAIR": adapters.ClassPair, "HF_CLASSES": adapters.Classes,
		"HF_FLAG_SHIFT": adapters.FlagShift, "HF_FLAG_EPOCH": 1<<adapters.FlagShift - 1,
		"HF_CAUSE_ABORT": 1, "HF_CAUSE_TIMEOUT": 2, "HF_CAUSE_DESYNC": 3,
		"HF_F16": uint64(fabric.F16), "HF_BF16": uint64(fabric.BF16), "HF_F32": uint64(fabric.F32), "HF_SUM": uint64(fabric.Sum),
		"HF_PROD": uint64(fabric.Prod), "HF_MAX": uint64(fabric.Max), "HF_MIN": uint64(fabric.Min), "HF_AVG": uint64(fabric.Avg),
		"hf_mailbox": adapters.MailboxBytes, "hf_mailbox.poison": 0, "hf_mailbox.target": adapters.TargetsAt,
		"hf_target": adapters.TargetBytes, "hf_target.epoch": 0,
		"hf_doorbell": adapters.DoorbellBytes, "hf_doorbell.epoch": adapters.DoorbellEpoch, "hf_doorbell.bytes": adapters.DoorbellSize,
		"hf_doorbell.flag": adapters.DoorbellFlag, "hf_doorbell.ended": adapters.DoorbellEnded,
		"hf_region": adapters.HeadBytes, "hf_region.doorbell": 0, "hf_region.record": adapters.RecordAt, "hf_region.abort": adapters.AbortAt,
		"hf_region.flag": adapters.FlagsAt,
	} {
		got, ok := c[name]
		require.True(t, ok, name)
		assert.Equal(t, want, got, name)
	}
	// The header asserts the same three in C.
	assert.Equal(t, 28672+11*8192, adapters.RecvAt(3, 8192, adapters.ClassPair, 2, 1))
	assert.Equal(t, 28672+17*8192, adapters.SendAt(3, 8192, 2, 1))
	assert.Equal(t, 28672+18*8192, adapters.RegionBytes(3, 8192))
	assert.Equal(t, adapters.HeadBytes, adapters.FlagAt(adapters.ClassPair, 1, 63, 7)+8)
}

// The document's tables are the header's.
func TestTheDocumentHasTheRegion(t *testing.T) {
	text, err := os.ReadFile("../../docs/mailbox.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+(?:\\.\\w+)?)` \\| (\\d+) \\|").FindAllStringSubmatch(string(text), -1)
	found := map[string]uint64{}
	for _, row := range rows {
		n, err := strconv.ParseUint(row[2], 10, 64)
		require.NoError(t, err)
		found[row[1]] = n
	}
	c := twin.RegionLayout()
	delete(c, "HF_FLAG_EPOCH") // all below the shift
	assert.Equal(t, c, found)
}
