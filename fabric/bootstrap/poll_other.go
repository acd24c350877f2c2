//go:build !linux && !darwin

package bootstrap

import (
	"runtime"
	"syscall"

	"github.com/hipfabric/hipfabric/fabric"
)

func supported() error {
	return fabric.Unsupportedf("a group of more than one rank on %s: linux or darwin is needed", runtime.GOOS)
}

func newPoller() (poller, error) { return nil, supported() }

func readFD(int, []byte) (int, error)  { return 0, supported() }
func writeFD(int, []byte) (int, error) { return 0, supported() }
func gone(syscall.Conn) bool           { return false }
func shutdownFD(int)                   {}
func closeFD(int)                      {}
