package ranks

import (
	"os/exec"
	"syscall"
)

// attributes give the process a group of its own, and have the kernel kill it should this process be killed.
func attributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
