//go:build !cgo || !linux

package driver

func cudaLoad(uintptr) (*Table, string, int, bool) { return nil, "", notSupported, false }

func cudaWhere(uintptr) string { return "" }
