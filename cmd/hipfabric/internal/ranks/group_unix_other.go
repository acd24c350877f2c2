//go:build unix && !linux

package ranks

import (
	"os/exec"
	"syscall"
)

// attributes give the process a group of its own.
func attributes(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
