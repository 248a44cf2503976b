// Package view formats plans, events and verdicts: as text for people, on a terminal or elsewhere, and as JSON for
// programs.
//
// Foreign text from commands, logs or files is printed without control characters. Colour never carries information
// that the text lacks.
package view

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Format is the version of all JSON that this package writes. Readers ignore unknown fields.
const Format = "1.0"

// Style is the style of text.
type Style struct {
	Color   bool
	Columns int // of the terminal; 0: no terminal, and lines may have any length
}

// Colours, as SGR numbers.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
	Dim    = "2"
	Strong = "1"
)

// Paint returns a text in a colour if the style has colours.
func (s Style) Paint(color, text string) string {
	if !s.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Bold marks a title.
func (s Style) Bold(text string) string { return s.Paint(Strong, text) }

// Error marks a word that reports an error.
func (s Style) Error(text string) string { return s.Paint(Red, text) }

// Clean returns foreign text as one printable line, cut if it is very long.
func Clean(text string) string { return printable.Clip(printable.Line(text), 4<<10) }

// Cells returns how many columns of a terminal a text takes.
func Cells(text string) int { return printable.Cells(text) }

// Fit cuts a text to a number of columns.
func Fit(text string, columns int) string { return printable.Fit(text, columns) }

// Pad adds blanks to a text up to a number of columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Cells(text)))
}

// Table writes rows with aligned columns, two spaces apart. It cleans the cells.
func Table(w io.Writer, indent string, rows [][]string) {
	Style{}.tableWithNotes(w, indent, rows, make([]string, len(rows)))
}

// tableWithNotes writes a table with a note after each row. On a terminal, a note that does not fit into the line is
// below its row.
func (s Style) tableWithNotes(w io.Writer, indent string, rows [][]string, notes []string) {
	for r, row := range rows {
		rows[r] = make([]string, len(row))
		for i, cell := range row {
			rows[r][i] = Clean(cell)
		}
	}
	widths := s.widthsOf(rows)
	for r, row := range rows {
		line := indent
		for i, cell := range row {
			if i < len(row)-1 {
				cell = Pad(cell, widths[i]) + "  "
			}
			line += cell
		}
		line = strings.TrimRight(line, " ")
		s.noted(w, line, Cells(line), notes[r], indent+"  ")
	}
}

// Noted writes a line, which must be clean, with a note. On a terminal, a note that does not fit into the line is
// below it.
func (s Style) Noted(w io.Writer, line, note string) {
	if note = Clean(note); note != "" {
		note = "  " + note
	}
	s.noted(w, line, Cells(line), note, "    ")
}

// noted writes a line, which takes that many columns, with a note. On a terminal, a note that does not fit into the
// line is below it, indented. The line may be empty.
func (s Style) noted(w io.Writer, line string, columns int, note, indent string) {
	if s.Columns == 0 || columns+Cells(note) <= s.Columns {
		fmt.Fprintln(w, line+note)
		return
	}
	color := ""
	if line != "" {
		color = Dim
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	for _, text := range wrap(strings.TrimLeft(note, ": "), s.Columns-len(indent)) {
		fmt.Fprintln(w, indent+s.Paint(color, text))
	}
}

// WidestPadding limits the padding of a column: one long text must not move all others aside.
const WidestPadding = 64

// widthsOf returns the widths of a table's columns. On a terminal, a column is padded to at most half of the line.
func (s Style) widthsOf(rows [][]string) (widths []int) {
	widest := WidestPadding
	if s.Columns > 0 {
		widest = min(widest, s.Columns/2)
	}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(widest, Cells(cell)))
		}
	}
	return widths
}

// tableWidth returns the width of a table, including its indent.
func (s Style) tableWidth(rows [][]string) (width int) {
	for _, columns := range s.widthsOf(rows) {
		width += 2 + columns
	}
	return width
}

// wrap breaks a text into lines of at most that many columns, between words if possible.
func wrap(text string, columns int) (lines []string) {
	columns = max(columns, 10)
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Cells(line)+1+Cells(word) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for Cells(line) > columns { // a word longer than a line
			head := strings.TrimSuffix(Fit(line, columns), "…")
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Bytes returns an amount of bytes in words.
func Bytes(n int64) string { return units.BytesSize(float64(n)) }

// Number returns a number with thousands separators.
func Number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count returns a number of things: 1 file, 2,000 files, 0 entries.
func Count(n int, thing string) string {
	if stem, ends := strings.CutSuffix(thing, "y"); ends {
		return count(n, thing, stem+"ies")
	}
	return count(n, thing, thing+"s")
}

// figure returns an amount with two significant digits, or as a whole number if it is larger.
func figure(v float64) string {
	if math.Abs(v) >= 10 {
		return Number(int(math.Round(v)))
	}
	return fmt.Sprintf("%.2g", v)
}

// Class returns the class of a failure and the rule that matched.
func Class(f *failure.Failure) string {
	switch {
	case f.Class == "":
		return ""
	case f.Rule == "":
		return string(f.Class) + ", undiagnosed"
	}
	return string(f.Class) + ", " + f.Rule
}
