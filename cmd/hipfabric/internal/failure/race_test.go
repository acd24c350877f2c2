//go:build race

package failure

// raceDetector makes everything slower, so tests repeat less.
const raceDetector = true
