//go:build race

package hclspec_test

// underRace says that the race detector is on.
const underRace = true
