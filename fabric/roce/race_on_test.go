//go:build race

package roce

// underRace chooses samples of what the race detector makes slow, and has seen elsewhere.
const underRace = true
