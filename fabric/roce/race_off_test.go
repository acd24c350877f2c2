//go:build !race

package roce

const underRace = false
