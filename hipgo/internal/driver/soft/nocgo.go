//go:build !cgo || !linux

package soft

import "github.com/hipfabric/hipfabric/hipgo/internal/driver"

func Open(string) (*driver.Table, error) { return nil, driver.ErrBuild }

func Close() {}

func Do(string, int, int) error { return driver.ErrBuild }

func Fault(string) error { return driver.ErrBuild }

func Kernel(string, string, string, []uint32) error { return driver.ErrBuild }

func Queue(uintptr) int { return -1 }

func Ring(int, int) int { return -1 }

func Parked() string { return "" }

func Leaks() string { return "" }

func Reports() string { return "" }

func Trace() []Op { return nil }
