//go:build race

package authoritative

// raceDetector: the tests run under it.
const raceDetector = true
