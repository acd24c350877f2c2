package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Facts are the environment of a measurement.
type Facts struct {
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"` // that this process may use
	Governor string `json:"governor,omitempty"`
}

// Read asks the system.
func Read() Facts {
	return Facts{OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: line("/proc/sys/kernel/osrelease"), CPU: processor(),
		Cores: runtime.NumCPU(), Governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")}
}

// line is the content of a one-line file, "" when it cannot be read.
func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for text := range strings.Lines(string(b)) {
		key, value, found := strings.Cut(text, ":")
		if key = strings.TrimSpace(key); found && (key == "model name" || key == "Model") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// thunderbolt lists the speed and lanes of every such link, since its network interface does not know its own.
func thunderbolt() string {
	var links []string
	files, _ := filepath.Glob("/sys/bus/thunderbolt/devices/*/tx_speed")
	for _, file := range files {
		dir := filepath.Dir(file)
		links = append(links, filepath.Base(dir)+" "+line(file)+" x "+line(filepath.Join(dir, "tx_lanes")))
	}
	return strings.Join(links, ", ")
}

// Boot names the running system, alike in every container of it, until its next boot; "" where that is not told.
func Boot() string { return line("/proc/sys/kernel/random/boot_id") }
