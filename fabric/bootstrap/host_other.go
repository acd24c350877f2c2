//go:build !linux && !darwin

package bootstrap

func hostIDs() (boot, net string) { return "", "" }
