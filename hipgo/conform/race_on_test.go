//go:build race

package conform

// raced: the race detector makes the same run several times as long.
const raced = true
