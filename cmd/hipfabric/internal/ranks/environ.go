package ranks

import (
	"slices"
	"strings"

	"github.com/hipfabric/hipfabric/fabric/launch"
)

// clean is environ without what this package sets, so that a run within a run starts afresh.
func clean(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{launch.Rank, launch.World, launch.LocalRank, launch.Master, launch.SecretFile, launch.Status}, name)
	})
}
