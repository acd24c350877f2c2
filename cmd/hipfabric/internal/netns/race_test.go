//go:build linux && race

package netns

// raceDetector slows everything down.
const raceDetector = true
