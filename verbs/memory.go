package verbs

import (
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// Memory is whole pages of the process's own, outside Go's heap and shared with nobody: what a device may read and write.
type Memory struct {
	mu         sync.Mutex
	mem        []byte // whole pages
	n          int
	registered int
}

// NewMemory gives zeroed memory of at least bytes, which must be 1 or more: whole pages, left out of a child that C code forks.
func NewMemory(bytes int) (*Memory, error) {
	page := os.Getpagesize()
	if bytes < 1 || bytes > maxBytes {
		return nil, invalid("memory of %d bytes: 1 to %d", bytes, maxBytes)
	}
	mem, err := mapPages((bytes + page - 1) / page * page)
	if err != nil {
		return nil, fmt.Errorf("verbs: %d bytes of memory: %w", bytes, err)
	}
	return &Memory{mem: mem, n: bytes}, nil
}

// maxBytes is what a 47-bit address space can hold.
const maxBytes = 1<<46 - 1

// Bytes is the memory, worth until Close: a use of it after that faults. None after Close. A word that a device writes must be read
// atomically.
func (m *Memory) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		return nil
	}
	return m.mem[:m.n:m.n]
}

// Len is in bytes.
func (m *Memory) Len() int { return m.n }

// Addr is the address of the first byte; 0 after Close.
func (m *Memory) Addr() uintptr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
}

// Close gives the pages back. While some of it is registered it refuses, since a device may still write there. A second Close does
// nothing.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.registered > 0 {
		return invalid("memory of %d bytes is registered %d times: close those MRs first", m.n, m.registered)
	}
	if m.mem == nil {
		return nil
	}
	err := unmapPages(m.mem)
	if err == nil {
		m.mem = nil
	}
	return err
}

// has says whether all of the range is the memory's.
func (m *Memory) has(addr uintptr, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		return false
	}
	at := addr - uintptr(unsafe.Pointer(unsafe.SliceData(m.mem))) // of what lies before it beyond its end
	return bytes > 0 && at < uintptr(m.n) && uintptr(bytes) <= uintptr(m.n)-at
}

// hold keeps the pages until release.
func (m *Memory) hold() (addr uintptr, bytes int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		return 0, 0, closed("memory")
	}
	m.registered++
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.mem))), len(m.mem), nil
}

func (m *Memory) release() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered--
}
