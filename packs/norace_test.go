//go:build !race

package packs_test

// underRace says that the race detector is on.
const underRace = false
