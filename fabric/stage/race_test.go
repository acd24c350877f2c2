//go:build race

package stage_test

// underRace chooses half of the contract's runs: the race detector slows every byte down, and looks for other faults.
const underRace = true
