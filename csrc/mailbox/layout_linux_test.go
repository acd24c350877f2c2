//go:build cgo

package mailbox_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hipfabric/hipfabric/csrc/mailbox/twin"
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

// What is written down in Go here is what the C compiler made of mailbox.h.
func TestGoAndCAgreeOnTheLayout(t *testing.T) {
	c := twin.Layout()
	a := reflect.TypeFor[args]()
	for i := range a.NumField() {
		f := a.Field(i)
		at, ok := c["hf_args."+snake(f.Name)]
		require.True(t, ok, f.Name)
		assert.Equal(t, uint64(f.Offset), at, f.Name)
		delete(c, "hf_args."+snake(f.Name))
	}
	for name := range c {
		assert.False(t, strings.HasPrefix(name, "hf_args."), "%s is not in Go", name)
	}
	assert.Equal(t, uint64(a.Size()), c["hf_args"])
	assert.LessOrEqual(t, c["hf_args"], uint64(128), "what a launch copies cheaply")
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
