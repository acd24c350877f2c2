package conform

import (
	"os"
	"runtime"
	"strings"
)

// system names this machine's operating system and kernel, as far as files tell.
func system() (name, kernel string) {
	name, kernel = runtime.GOOS+"/"+runtime.GOARCH, "not known"
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(b))
	}
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return name, kernel
	}
	for line := range strings.Lines(string(b)) {
		if pretty, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			name += ", " + strings.Trim(strings.TrimSpace(pretty), `"`)
		}
	}
	return name, kernel
}
