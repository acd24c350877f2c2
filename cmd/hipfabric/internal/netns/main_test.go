//go:build linux

package netns

import (
	"flag"
	"os"
	"testing"
)

// asWorker makes the test binary a rank that obeys calls.
const asWorker = "HIPFABRIC_TEST_WORKER"

// inGuest is set in the virtual machine of make test-rxe.
const inGuest = "HIPFABRIC_TEST_VM"

// onlyShaped leaves all other tests to make test: the guest may be an emulated one, and slow.
func onlyShaped() {
	flag.Parse()
	if run := flag.Lookup("test.run"); run.Value.String() == "" {
		_ = run.Value.Set("^TestShaped")
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(obey(os.Stdin, os.Stdout))
	}
	if os.Getenv(inGuest) != "" {
		onlyShaped()
	}
	os.Exit(m.Run())
}
