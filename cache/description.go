package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// KeyVersion is the first line of every description. Raising it makes every stored result stale at once.
const KeyVersion = "benchgraph key 1"

// Key identifies a result by everything that determines it: the SHA-256 of a Description's text. The zero Key is no
// key.
type Key [sha256.Size]byte

// String returns the key in 64 hexadecimal digits.
func (k Key) String() string {
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], k[:]) // hex.EncodeToString allocates twice
	return string(digits[:])
}

// Short returns the first 12 digits, for people.
func (k Key) Short() string { return k.String()[:12] }

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k == Key{} }

// MarshalText writes the 64 digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the 64 digits.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

// ParseKey reads what String wrote.
func ParseKey(s string) (Key, error) {
	var k Key
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(k) {
		return k, fmt.Errorf("key %.80q: want %d hexadecimal digits", s, 2*len(k))
	}
	copy(k[:], raw)
	return k, nil
}

// Description is the text from which a Key is made: a line for each label with its quoted values, in the order of the
// calls of Add. Quoting frames every value, so that no two lists of values give the same text. The text is kept beside
// the result: the difference of two texts tells why a result is stale.
type Description struct {
	text []byte
}

// usualText is the first capacity of a description, in bytes: most descriptions fit, and are not copied as they grow.
const usualText = 4 << 10

// Describe begins the description of a thing of a kind.
func Describe(kind string) *Description {
	d := new(Description)
	d.Reset(kind)
	return d
}

// Reset begins the description of another thing in the same memory: a plan describes thousands.
func (d *Description) Reset(kind string) {
	if d.text == nil {
		d.text = make([]byte, 0, usualText)
	}
	d.text = append(d.text[:0], KeyVersion...)
	d.text = append(d.text, '\n')
	d.Add("kind", kind)
}

// Add writes a line with a label and its values. Values are quoted. A label is quoted if it is empty or has a space, a
// quote or a control character, since it could otherwise pass for something else.
func (d *Description) Add(label string, values ...string) {
	if plain(label) {
		d.text = append(d.text, label...)
	} else {
		d.text = appendQuoted(d.text, label)
	}
	for _, v := range values {
		d.text = append(d.text, ' ')
		d.text = appendQuoted(d.text, v)
	}
	d.text = append(d.text, '\n')
}

// plain reports whether a label can stand unquoted.
func plain(label string) bool {
	for i := range len(label) {
		if label[i] == ' ' || !verbatim(label[i]) {
			return false
		}
	}
	return label != ""
}

// verbatim reports whether a byte stands for itself between quotes.
func verbatim(c byte) bool { return ' ' <= c && c < 0x7f && c != '"' && c != '\\' }

// appendQuoted does the same as strconv.AppendQuote. Most values need no escapes, and it is faster to check that first.
func appendQuoted(text []byte, v string) []byte {
	for i := range len(v) {
		if !verbatim(v[i]) {
			return strconv.AppendQuote(text, v)
		}
	}
	text = append(text, '"')
	text = append(text, v...)
	return append(text, '"')
}

// Text returns the whole description.
func (d *Description) Text() string { return string(d.text) }

// Key returns the SHA-256 of the text.
func (d *Description) Key() Key { return sha256.Sum256(d.text) }

// KeyOf returns the key of a description's text.
func KeyOf(text string) Key { return sha256.Sum256([]byte(text)) }

// Line is one line of a description, read back.
type Line struct {
	Label  string
	Values []string
}

// ParseText reads a description's text back into its lines, without the version line. It accepts only what Description
// writes: the lines, written again, give the same text.
func ParseText(text string) ([]Line, error) {
	rest, ok := strings.CutPrefix(text, KeyVersion+"\n")
	if !ok {
		return nil, fmt.Errorf("key text: first line is not %q", KeyVersion)
	}
	var lines []Line
	for number := 2; rest != ""; number++ {
		var line string
		line, rest, ok = strings.Cut(rest, "\n")
		if !ok {
			return nil, fmt.Errorf("key text: line %d is cut short", number)
		}
		parsed, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("key text: line %d: %w", number, err)
		}
		lines = append(lines, parsed)
	}
	return lines, nil
}

func parseLine(line string) (Line, error) {
	var parsed Line
	rest := ""
	if strings.HasPrefix(line, `"`) {
		label, after, err := cutQuoted(line)
		if err != nil {
			return parsed, err
		}
		if plain(label) {
			return parsed, fmt.Errorf("label %q needs no quotes", label)
		}
		parsed.Label, rest = label, after
	} else {
		label, _, _ := strings.Cut(line, " ")
		if !plain(label) {
			return parsed, fmt.Errorf("label %q is not quoted", label)
		}
		parsed.Label, rest = label, line[len(label):]
	}
	for rest != "" {
		quoted, ok := strings.CutPrefix(rest, " ")
		if !ok {
			return parsed, fmt.Errorf("no space before %q", rest)
		}
		value, after, err := cutQuoted(quoted)
		if err != nil {
			return parsed, err
		}
		parsed.Values = append(parsed.Values, value)
		rest = after
	}
	return parsed, nil
}

// cutQuoted reads the value at the beginning of s. The value must be quoted as strconv.Quote does it, since another
// spelling of the same value would give another key.
func cutQuoted(s string) (value, rest string, err error) {
	if s != "" && s[0] == '"' {
		end := 1
		for end < len(s) && verbatim(s[end]) {
			end++
		}
		if end < len(s) && s[end] == '"' { // no escapes, as in most values
			return s[1:end], s[end+1:], nil
		}
	}
	quoted, err := strconv.QuotedPrefix(s)
	if err == nil {
		value, err = strconv.Unquote(quoted)
	}
	if err != nil || strconv.Quote(value) != quoted {
		return "", "", fmt.Errorf("a value is not quoted as it should be: %.40q", s)
	}
	return value, s[len(quoted):], nil
}
