// Package view shows plans, events and verdicts: as text for people, on a terminal or elsewhere, and as JSON for
// programs.
//
// Everything that commands, logs or files may have written is shown without control characters. Colour is never the
// only sign of anything.
package view

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Format is the version of all JSON that is written here. Readers ignore fields that they do not know.
const Format = "1.0"

// Style is how text is written.
type Style struct {
	Color   bool
	Columns int // of the terminal; 0: it is none, and lines may be of any length
}

// The colours, as their SGR numbers.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
	Dim    = "2"
	Strong = "1"
)

// Paint returns a text in a colour, where colours are wanted.
func (s Style) Paint(color, text string) string {
	if !s.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Bold marks a title.
func (s Style) Bold(text string) string { return s.Paint(Strong, text) }

// Error marks the word that says that something went wrong.
func (s Style) Error(text string) string { return s.Paint(Red, text) }

// Clean is a foreign text as one printable line, cut where no one would read on.
func Clean(text string) string {
	const most = 4 << 10
	line := printable.Line(text)
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + "…"
}

// Cells is how many columns of a terminal a text takes.
func Cells(text string) int { return printable.Cells(text) }

// Fit cuts a text to a number of columns.
func Fit(text string, columns int) string { return printable.Fit(text, columns) }

// Pad adds blanks to a text up to a number of columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Cells(text)))
}

// Table writes rows in columns that are as wide as their widest cell, two spaces apart. It cleans the cells.
func Table(w io.Writer, indent string, rows [][]string) {
	Style{}.tableWithNotes(w, indent, rows, make([]string, len(rows)))
}

// tableWithNotes is a table with a note behind the last cell of each row. On a terminal, a note that does not fit into
// a line stands below its row.
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

// Noted writes a line, which must be clean, and a note behind it. On a terminal, a note that does not fit into the line
// stands below.
func (s Style) Noted(w io.Writer, line, note string) {
	if note = Clean(note); note != "" {
		note = "  " + note
	}
	s.noted(w, line, Cells(line), note, "    ")
}

// noted writes a line, which takes so many columns, and a note behind it. On a terminal, a note that does not fit into
// the line stands below, behind the indent. The line may be empty.
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

// WidestPadding is the most columns that a text is padded to: a long one must not push all others aside.
const WidestPadding = 64

// widthsOf are the widths of the columns of a table. On a terminal, none is padded to more than half of the line.
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

// tableWidth is that of a table, indent included.
func (s Style) tableWidth(rows [][]string) (width int) {
	for _, columns := range s.widthsOf(rows) {
		width += 2 + columns
	}
	return width
}

// wrap divides a text into lines of so many columns at most, between words where it can.
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
		for Cells(line) > columns { // one word that is longer than a line
			head := strings.TrimSuffix(Fit(line, columns), "…")
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Duration is a duration in two units at most: 3 h 20 min, 12 min 5 s, 4.2 s, 30 ms.
func Duration(d time.Duration) string {
	d = d.Round(time.Millisecond)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	two := func(big, small time.Duration, bigName, smallName string) string {
		text := fmt.Sprintf("%d %s", d/big, bigName)
		if rest := d % big / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smallName)
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 48*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}

// Bytes is an amount of bytes.
func Bytes(n int64) string { return units.BytesSize(float64(n)) }

// Number is a count with its thousands apart.
func Number(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count is a number of things: 1 file, 2,000 files, 0 entries.
func Count(n int, thing string) string {
	if stem, ends := strings.CutSuffix(thing, "y"); ends {
		return count(n, thing, stem+"ies")
	}
	return count(n, thing, thing+"s")
}

// figure is an amount with two significant digits, or as a whole number when it has more.
func figure(v float64) string {
	if math.Abs(v) >= 10 {
		return Number(int(math.Round(v)))
	}
	return fmt.Sprintf("%.2g", v)
}

// Class is the class of a failure and the rule that found it.
func Class(f *failure.Failure) string {
	switch {
	case f.Class == "":
		return ""
	case f.Rule == "":
		return string(f.Class) + ", undiagnosed"
	}
	return string(f.Class) + ", " + f.Rule
}
