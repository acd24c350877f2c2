//go:build !unix

package ranks

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/hipfabric/hipfabric/fabric"
)

// Forwarded lists the signals that belong in Options.Signals.
func Forwarded() []os.Signal { return nil }

func supported() error {
	return fabric.Unsupportedf("starting ranks needs process groups, which this system lacks; start each rank by hand with HIPFABRIC_* set")
}

func attributes(*exec.Cmd) {}

func signalGroup(int, syscall.Signal) bool { return false }

func signalName(sig syscall.Signal) string { return sig.String() }
