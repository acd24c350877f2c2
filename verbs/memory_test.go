//go:build unix

package verbs

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryIsWholePages(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{1, page - 1, page, page + 1, 3 * page} {
		m, err := NewMemory(n)
		require.NoError(t, err)
		assert.Equal(t, n, m.Len())
		assert.Equal(t, make([]byte, n), m.Bytes())
		assert.Equal(t, n, cap(m.Bytes()), "the rest of the last page is nobody's")
		assert.Zero(t, m.Addr()%uintptr(page))
		addr, bytes, err := m.hold()
		require.NoError(t, err)
		assert.Equal(t, m.Addr(), addr)
		assert.Equal(t, (n+page-1)/page*page, bytes, "whole pages are registered")
		require.ErrorContains(t, m.Close(), fmt.Sprintf("memory of %d bytes is registered 1 times", n))
		m.release()
		for range 2 {
			require.NoError(t, m.Close())
		}
		assert.Nil(t, m.Bytes())
		assert.Zero(t, m.Addr())
		_, _, err = m.hold()
		require.ErrorIs(t, err, os.ErrClosed)
	}
	for _, n := range []int{0, -1, 1 << 46} {
		_, err := NewMemory(n)
		require.ErrorContains(t, err, fmt.Sprintf("memory of %d bytes: 1 to", n))
	}
	_, err := NewMemory(1<<46 - 1)
	require.ErrorContains(t, err, "70368744177663 bytes of memory: ")
}

func TestPagesAreLeftOutOfAForkedChild(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has MADV_DONTFORK")
	}
	m, err := NewMemory(1)
	require.NoError(t, err)
	defer m.Close()
	f, err := os.Open("/proc/self/smaps")
	require.NoError(t, err)
	defer f.Close()
	within := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); err == nil {
			within = from <= m.Addr() && m.Addr() < to
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && within {
			assert.Contains(t, strings.Fields(flags), "dc")
			return
		}
	}
	t.Fatal("smaps has no flags of the page")
}
