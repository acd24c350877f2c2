//go:build race

package fabrictest

// underRace shortens the product of values: the race detector slows every byte down, and looks for other faults.
const underRace = true
