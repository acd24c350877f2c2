//go:build !linux

package verbstest

func mapped(uintptr, int) bool { return true }
