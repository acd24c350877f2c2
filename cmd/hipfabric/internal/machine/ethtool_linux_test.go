package machine

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// message is one of generic netlink with these attributes.
func message(family uint16, attributes []byte) []byte {
	m := make([]byte, unix.NLMSG_HDRLEN+genericHeader)
	binary.NativeEndian.PutUint16(m[4:], family)
	return append(m, attributes...)
}

func TestAttributesAreReadBack(t *testing.T) {
	m := message(77, append(attribute(5, []byte{1, 2, 3}), attribute(6|unix.NLA_F_NESTED, attribute(1, []byte{9}))...))
	got, err := attributesOf(m, 77)
	require.NoError(t, err)
	assert.Equal(t, map[uint16][]byte{5: {1, 2, 3}, 6: {5, 0, 1, 0, 9, 0, 0, 0}}, got)
	_, err = attributesOf(m, 78)
	assert.ErrorIs(t, err, errNetlink, "another family, as an error message is")
}

func TestBrokenAttributesAreRefused(t *testing.T) {
	whole := message(77, attribute(5, []byte{1, 2, 3, 4}))
	for n := range whole {
		got, err := attributesOf(whole[:n], 77)
		assert.True(t, err != nil || len(got) == 0, "%d bytes: %v", n, got)
	}
	for _, size := range []uint16{0, 3, 9, 0xffff} {
		broken := append([]byte{}, whole...)
		binary.NativeEndian.PutUint16(broken[unix.NLMSG_HDRLEN+genericHeader:], size)
		_, err := attributesOf(broken, 77)
		assert.ErrorIs(t, err, errNetlink, "size %d", size)
	}
}

func TestTheLoopbackModeratesNothing(t *testing.T) {
	_, _, ok := coalesce(1)
	assert.False(t, ok)
	_, _, ok = coalesce(1 << 30)
	assert.False(t, ok, "no such interface")
	assert.Empty(t, driver("none"))
}
