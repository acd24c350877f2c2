//go:build !race

package fabrictest

const underRace = false
