// Package words puts lists and names of findings into sentences.
package words

import (
	"fmt"
	"strings"
)

// Shown is how many blocks, metrics or warnings a text names before it only counts them.
const Shown = 3

// Unit is a unit for people.
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

// Some names the first of a list, and counts the rest.
func Some(names []string) string {
	if len(names) <= Shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:Shown], ", "), len(names)-Shown)
}

// Count puts a number in front of the words for one thing, or else of those for several.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// Brief is the beginning of a digest.
func Brief(digest string) string {
	return digest[:min(len(digest), 12)]
}
