//go:build !linux

package machine

func driver(string) string { return "" }

func coalesce(int) (usecs int, adaptive, ok bool) { return 0, false, false }
