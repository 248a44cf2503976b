//go:build race

package hclspec_test

// underRace says that the race detector takes several times the memory and the time.
const underRace = true
