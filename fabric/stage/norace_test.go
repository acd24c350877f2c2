//go:build !race

package stage_test

const underRace = false
