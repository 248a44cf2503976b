//go:build race

package needtest

// UnderRace says that the race detector is on.
const UnderRace = true
