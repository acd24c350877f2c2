//go:build linux

package netns

import (
	"os"
	"testing"
)

// asWorker makes the test binary a rank that obeys calls.
const asWorker = "HIPFABRIC_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(obey(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}
