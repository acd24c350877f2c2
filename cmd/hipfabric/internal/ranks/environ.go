package ranks

import (
	"os"
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/fabric"
	"github.com/hipfabric/hipfabric/fabric/launch"
)

// inherited is this process's environment for a local rank: all of it but this module's own variables, so that a run
// within a run starts afresh. Those that its tests read stay.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "HIPFABRIC_") && !strings.HasPrefix(entry, launch.TestPrefix)
	})
}

// Named gives the variables that the user names for the ranks, each NAME=VALUE, or NAME for its value here.
func Named(names []string) ([]string, error) {
	var out []string
	for _, entry := range names {
		name, _, set := strings.Cut(entry, "=")
		if !isName(name) {
			return nil, fabric.Invalidf("%q is no name of an environment variable", name)
		}
		value, here := os.LookupEnv(name)
		if set {
			out = append(out, entry)
		} else if here {
			out = append(out, name+"="+value)
		}
	}
	return out, nil
}

// isName says whether a shell can export the variable.
func isName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
