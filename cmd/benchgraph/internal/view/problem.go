package view

import (
	"fmt"
	"io"

	"github.com/benchgraph/benchgraph/hclspec/dataset"
)

// Problems writes the problems of the rows of a table, and returns how many rows are left out.
func Problems(w io.Writer, s Style, problems []dataset.Problem) (lost int) {
	for _, p := range problems {
		word := s.Bold("Warning:")
		if p.Lost {
			word = s.Error("Left out:")
			lost++
		}
		fmt.Fprintf(w, "%s %s\n", word, Clean(p.String()))
	}
	return lost
}
