// Package words puts lists and names of findings into sentences.
package words

import (
	"fmt"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// Shown is the number of blocks, metrics or warnings that a text names; it only counts the others.
const Shown = 3

// Unit names a unit in a sentence.
func Unit(unit string) string {
	if unit == "" {
		return "no unit"
	}
	return fmt.Sprintf("the unit %q", unit)
}

// Blocks names blocks: "block 3", "blocks 1, 2, 3 and 4 more".
func Blocks(blocks []int) string {
	if len(blocks) == 1 {
		return fmt.Sprintf("block %d", blocks[0])
	}
	names := make([]string, len(blocks))
	for i, b := range blocks {
		names[i] = fmt.Sprint(b)
	}
	return "blocks " + Some(names)
}

// Some lists the first Shown names, and counts the rest.
func Some(names []string) string { return printable.Some(names, Shown) }

// Count writes a number with its noun: one if n is 1, else many.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// Brief returns the first 12 characters of a digest.
func Brief(digest string) string {
	return digest[:min(len(digest), 12)]
}
