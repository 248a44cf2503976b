package lines

import (
	"io"
	"strings"
)

// MaxEvidence is the length in bytes to which a line is shortened as evidence.
const MaxEvidence = 400

// Clip shortens a text to n bytes at most.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}

// Plain returns a text as a person reads it: without escape sequences, control and format characters, with U+FFFD for
// bytes that are not UTF-8.
func Plain(text string) string { return string(scrubbed([]byte(text))) }

// Evidence returns the part of a line around a place, at most MaxEvidence bytes.
func Evidence(line []byte, place int) string {
	const before = 100
	if len(line) > MaxEvidence && place > before {
		line = line[min(place-before, len(line)-MaxEvidence):]
	}
	text := strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(line), "")), "\t", " ")
	return Clip(text, MaxEvidence)
}

// Last returns the last line of a log that is not blank, cleaned and shortened like Evidence. It is shown for a failure
// that no rule explains.
func Last(log io.Reader) string {
	last := ""
	for l := New(log); l.Next(); {
		if text := Evidence(l.Bytes(), 0); strings.TrimSpace(text) != "" {
			last = text
		}
	}
	return last
}
