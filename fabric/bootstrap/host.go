package bootstrap

import (
	"hash/fnv"
	"os"
)

// here describes this host, so that ranks know which others share its cores and its loopback.
func here() place {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "unknown"
	}
	boot, net := hostIDs()
	if boot == "" {
		boot = "host " + name
	}
	return place{host: name[:min(len(name), maxValue)], boot: hash64(boot), net: hash64(boot + "\x00" + net)}
}

func hash64(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
