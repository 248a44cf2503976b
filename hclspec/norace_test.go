//go:build !race

package hclspec_test

const underRace = false
