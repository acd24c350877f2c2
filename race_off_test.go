//go:build !race

package hipfabric

const raceEnabled = false
