//go:build !race

package conform

const raced = false
