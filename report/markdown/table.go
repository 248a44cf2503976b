package markdown

import (
	"strings"
	"unicode/utf8"
)

// table is a Markdown table that is also readable as source. Callers escape the cells.
type table struct {
	head  []column
	cells [][]string
}

type column struct {
	title string
	right bool // align right, for numbers
}

const widestPadding = 60 // runes; one long cell must not move all others aside

func (t *table) add(cells ...string) { t.cells = append(t.cells, cells) }

// without drops the columns that are empty in all rows.
func (t *table) without() {
	for c := len(t.head) - 1; c >= 0; c-- {
		used := false
		for _, row := range t.cells {
			used = used || row[c] != ""
		}
		if used {
			continue
		}
		t.head = append(t.head[:c:c], t.head[c+1:]...)
		for i, row := range t.cells {
			t.cells[i] = append(row[:c:c], row[c+1:]...)
		}
	}
}

func (t *table) write(out *strings.Builder) {
	t.without()
	widths := make([]int, len(t.head))
	for c, h := range t.head {
		widths[c] = max(3, utf8.RuneCountInString(h.title))
		for _, row := range t.cells {
			widths[c] = max(widths[c], min(widestPadding, utf8.RuneCountInString(row[c])))
		}
	}
	line := func(cells func(c int) string) {
		for c, h := range t.head {
			text := cells(c)
			padding := strings.Repeat(" ", max(0, widths[c]-utf8.RuneCountInString(text)))
			out.WriteString("| ")
			if h.right {
				out.WriteString(padding + text)
			} else {
				out.WriteString(text + padding)
			}
			out.WriteByte(' ')
		}
		out.WriteString("|\n")
	}
	line(func(c int) string { return t.head[c].title })
	line(func(c int) string {
		if t.head[c].right {
			return strings.Repeat("-", widths[c]-1) + ":"
		}
		return strings.Repeat("-", widths[c])
	})
	for _, row := range t.cells {
		line(func(c int) string { return row[c] })
	}
	out.WriteByte('\n')
}
