//go:build unix

package verbs

import "golang.org/x/sys/unix"

func mapPages(bytes int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	if err := keepFromChildren(mem); err != nil {
		_ = unix.Munmap(mem) // the first error is what matters
		return nil, err
	}
	return mem, nil
}

func unmapPages(mem []byte) error { return unix.Munmap(mem) }
