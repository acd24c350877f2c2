//go:build linux && !race

package netns

const raceDetector = false
