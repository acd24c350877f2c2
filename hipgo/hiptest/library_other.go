//go:build !linux

package hiptest

import "testing"

// Library needs Linux; t is skipped.
func Library(t testing.TB, _ int) string {
	t.Helper()
	t.Skip("hiptest: the software device needs Linux")
	return ""
}
