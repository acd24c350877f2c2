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

// flagSet says whether the command line has a flag.
func flagSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// onlyShaped leaves all other tests to make test: the guest may be an emulated one, and slow.
func onlyShaped() {
	if !flagSet("test.run") {
		_ = flag.Set("test.run", "^TestShaped")
	}
}

// notShaped leaves to the guest what needs its kernel: few others have netem and tbf.
func notShaped() {
	if !flagSet("test.run") && !flagSet("test.skip") {
		_ = flag.Set("test.skip", "^TestShaped")
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		os.Exit(obey(os.Stdin, os.Stdout))
	}
	flag.Parse()
	if os.Getenv(inGuest) != "" {
		onlyShaped()
	} else {
		notShaped()
	}
	os.Exit(m.Run())
}
