package printable

import (
	"fmt"
	"strings"
)

// Some lists at most so many names, and counts the rest.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Clip cuts a text to that many bytes and marks the cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Excerpt makes a message of another program printable. It keeps the beginning and the end of a long text, which say
// most.
func Excerpt(text string) string {
	const most = 300 // bytes
	if n := len(text); n > most {
		text = strings.ToValidUTF8(text[:most/2], "") + " ... " + strings.ToValidUTF8(text[n-most/2:], "")
	}
	return Line(text)
}
