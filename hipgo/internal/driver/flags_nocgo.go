//go:build !cgo || !linux

package driver

// HostMallocFlags is not supported in this build.
func (*Table) HostMallocFlags(int, int, uint32) ([]byte, uintptr, int) { return nil, 0, notSupported }

// Write64Flags is not supported in this build.
func (*Table) Write64Flags(int, uintptr, uintptr, uint64, uint32) int { return notSupported }
