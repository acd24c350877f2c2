package verbstest

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped says whether the pages exist: registering others must fail, since an access would end the process.
func mapped(addr uintptr, bytes int) bool {
	page := uintptr(os.Getpagesize())
	from := addr &^ (page - 1)
	pages := (addr + uintptr(bytes) - from + page - 1) / page
	if pages > 1<<28 {
		return false
	}
	const some = 4096
	var in [some]byte
	for ; pages > 0; pages -= min(pages, some) {
		n := min(pages, some)
		if _, _, e := unix.Syscall(unix.SYS_MINCORE, from, n*page, uintptr(unsafe.Pointer(&in))); e == unix.ENOMEM || e == unix.EINVAL {
			return false
		}
		from += n * page
	}
	return true
}
