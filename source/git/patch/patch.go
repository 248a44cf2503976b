// Package patch parses patches as git writes them, and refuses forbidden ones.
package patch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/tree"
)

// Error is the error for a refused patch. A refused patch leaves no files.
type Error struct {
	File   string // file that the patch would change; empty: the whole patch is at fault
	Hunk   int    // hunk of the file, from 1; 0: no single hunk is at fault
	Line   int    // line of the patch, from 1, at which the hunk or the unreadable part begins; 0: unknown
	Reason string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("patch")
	if e.Line > 0 {
		fmt.Fprintf(&b, " line %d", e.Line)
	}
	if e.File != "" {
		fmt.Fprintf(&b, ": %s", e.File)
	}
	if e.Hunk > 0 {
		fmt.Fprintf(&b, ": hunk %d", e.Hunk)
	}
	return b.String() + ": " + e.Reason
}

// MaxSize is the size in bytes above which a patch is refused.
const MaxSize = 64 << 20

const typeBits = 0o170000

// Part is the part of a patch for one file.
type Part struct {
	File  *gitdiff.File
	Line  int   // first line in the patch
	Hunks []int // first lines of its hunks in the patch
}

// Name returns the name of the part for errors.
func (p Part) Name() string {
	if p.File.NewName != "" && p.File.NewName != os.DevNull {
		return p.File.NewName
	}
	return p.File.OldName
}

// Touches returns the paths that the part changes, creates or removes.
func (p Part) Touches() []string {
	var paths []string
	if !p.File.IsNew && !p.File.IsCopy && p.File.OldName != "" {
		paths = append(paths, p.File.OldName)
	}
	if !p.File.IsDelete && p.File.NewName != "" && !slices.Contains(paths, p.File.NewName) {
		paths = append(paths, p.File.NewName)
	}
	return paths
}

// Touched returns the paths that a patch changes, creates or removes, sorted. For an empty, unreadable or forbidden
// patch it returns *Error.
func Touched(patch []byte) ([]string, error) {
	parts, err := Parse(patch)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range parts {
		paths = append(paths, p.Touches()...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// OnlyModes reports whether a patch changes modes of files, and neither their content nor their names.
func OnlyModes(patch []byte) bool {
	parts, err := Parse(patch)
	return err == nil && !slices.ContainsFunc(parts, func(p Part) bool {
		f := p.File
		return len(f.TextFragments) > 0 || f.IsBinary || f.IsNew || f.IsDelete || f.IsRename || f.IsCopy
	})
}

var parseErrorLine = lazyregexp.New(`^gitdiff: line (\d+): `)

// Parse parses a patch. It returns *Error for a forbidden one.
func Parse(patch []byte) ([]Part, error) {
	readings, err := Readings(patch)
	if err != nil {
		return nil, err
	}
	return readings[0].Parts, nil
}

// Reading is one way to read a patch.
type Reading struct {
	Text  []byte
	Parts []Part
}

// Readings parses a patch in every plausible way, at least one. There are two if its headers end in CR LF: an editor
// has changed either all line ends, or only those outside the files' content.
func Readings(patch []byte) ([]Reading, error) {
	if len(patch) > MaxSize {
		return nil, &Error{Reason: fmt.Sprintf("over %d MiB", MaxSize>>20)}
	}
	if len(patch) > 0 && patch[len(patch)-1] != '\n' {
		patch = append(patch[:len(patch):len(patch)], '\n') // some programs trim the last newline
	}
	texts := [][]byte{patch}
	if clean := headersWithoutCR(patch); !bytes.Equal(clean, patch) {
		texts = [][]byte{clean, bytes.ReplaceAll(patch, []byte("\r\n"), []byte("\n"))}
	}
	var readings []Reading
	var first error
	for _, text := range texts {
		parts, err := parseText(text)
		if err == nil {
			readings = append(readings, Reading{text, parts})
		} else if first == nil {
			first = err
		}
	}
	if len(readings) == 0 {
		return nil, first
	}
	return readings, nil
}

func parseText(patch []byte) ([]Part, error) {
	sections := split(patch)
	if len(sections) == 0 {
		if len(bytes.TrimSpace(patch)) == 0 {
			return nil, &Error{Reason: "empty"}
		}
		return nil, &Error{Reason: "no difference in it (wanted: the output of git diff)"}
	}
	parts := make([]Part, 0, len(sections))
	for _, s := range sections {
		p, err := s.parse()
		if err != nil {
			return nil, err
		}
		if reason := p.forbidden(); reason != "" {
			return nil, &Error{File: p.Name(), Line: p.Line, Reason: reason}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// lacksPrefix returns the error for a name whose only component git apply would remove.
func (s section) lacksPrefix(name string) error {
	return &Error{File: name, Line: s.line,
		Reason: "the name lacks the prefix a/ or b/: make the patch by git diff without --no-prefix"}
}

func (s section) parse() (Part, error) {
	header, _, _ := bytes.Cut(s.text, []byte("\n"))
	if names := strings.Fields(string(header)); s.git && len(names) == 4 && !bytes.Contains(header, []byte("/")) {
		return Part{}, s.lacksPrefix(names[3]) // the parser would accept such a name
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(s.text))
	if err != nil {
		line, reason := s.line, err.Error()
		if at := parseErrorLine().FindStringSubmatch(reason); at != nil {
			n, _ := strconv.Atoi(at[1])
			line, reason = s.line+max(n, 1)-1, strings.TrimPrefix(reason, at[0])
		}
		if strings.Contains(reason, "miscounts") && len(s.hunks) > 0 {
			line = s.hunks[len(s.hunks)-1] // the parser reports where it gave up, perhaps the end of the file
		}
		return Part{}, &Error{Line: line, Reason: reason}
	}
	if len(files) != 1 {
		return Part{}, &Error{Line: s.line, Reason: "the header of a file is malformed"}
	}
	p := Part{File: files[0], Line: s.line, Hunks: s.hunks}
	if !s.git {
		// git apply removes the first component of every name; the parser does so only for git's own headers. Of the
		// two remaining names, git takes the old one if the new one begins with it (a backup) or has no prefix, and the
		// new one otherwise. The parser compares them too early.
		if !p.File.IsNew && !p.File.IsDelete {
			if p.File.OldName, p.File.NewName, err = s.names(); err != nil {
				return Part{}, &Error{Line: s.line, Reason: err.Error()}
			}
		}
		lacking := ""
		for _, name := range []*string{&p.File.OldName, &p.File.NewName} {
			if strings.HasPrefix(*name, "/") {
				return Part{}, &Error{File: *name, Line: s.line,
					Reason: "the name is absolute: it leads out of the tree"}
			}
			_, rest, ok := strings.Cut(*name, "/")
			if *name != "" && !ok {
				lacking = *name
			}
			*name = rest
		}
		switch old, name := p.File.OldName, p.File.NewName; {
		case old == "" && name == "" && lacking != "":
			return Part{}, s.lacksPrefix(lacking)
		case p.File.IsNew || p.File.IsDelete:
		case name == "", old != "" && strings.HasPrefix(name, old):
			p.File.NewName = old
		default:
			p.File.OldName = name
		}
	}
	return p, nil
}

// names returns both names in the header of a section without a git header, each as the parser reads it.
func (s section) names() (old, new string, err error) {
	lines := bytes.SplitAfterN(s.text, []byte("\n"), 3)
	for i, name := range []*string{&old, &new} {
		_, text, _ := bytes.Cut(lines[i], []byte(" "))
		files, _, err := gitdiff.Parse(strings.NewReader(fmt.Sprintf("--- %s+++ %[1]s@@ -1 +1 @@\n-a\n+b\n", text)))
		if err != nil || len(files) != 1 {
			return "", "", errors.Join(err, errors.New("the header of a file is malformed"))
		}
		*name = files[0].OldName
	}
	return old, new, nil
}

// forbidden returns the forbidden change in the part, or "".
func (p Part) forbidden() string {
	f := p.File
	for _, name := range []string{f.OldName, f.NewName} {
		if name != "" && !tree.Inside(name) {
			return "leads out of the tree, or into .git"
		}
	}
	switch {
	case len(p.Touches()) == 0:
		return "names no file"
	case f.OldMode&typeBits == 0o160000 || f.NewMode&typeBits == 0o160000:
		return "changes a submodule"
	case f.IsBinary && f.BinaryFragment == nil:
		return "a binary file without its content (wanted: git diff --binary)"
	}
	return ""
}

// section is the part of a patch for one file.
type section struct {
	text  []byte
	line  int
	hunks []int
	git   bool // begins with "diff --git"
}

// split returns the sections of a patch. It skips text before and between them (a mail's text, a signature).
func split(patch []byte) []section {
	var all []section
	lines := bytes.SplitAfter(patch, []byte("\n"))
	at := func(i int, prefix string) bool { return i < len(lines) && bytes.HasPrefix(lines[i], []byte(prefix)) }
	c := counter{}
	inHeader := false // in the header of a git section, whose --- line begins no new section
	for i, line := range lines {
		if c.content(line) {
			add(all, line)
			continue
		}
		switch {
		case at(i, "diff --git "):
			all = append(all, section{line: i + 1, git: true})
			inHeader = true
		case at(i, "--- ") && at(i+1, "+++ ") && at(i+2, "@@ -") && !inHeader:
			all = append(all, section{line: i + 1})
		case at(i, "@@ -"):
			inHeader = false
			if len(all) > 0 {
				last := &all[len(all)-1]
				last.hunks = append(last.hunks, i+1)
			}
		}
		c.header(line)
		add(all, line)
	}
	return all
}

func add(all []section, line []byte) {
	if len(all) > 0 {
		last := &all[len(all)-1]
		last.text = append(last.text, line...)
	}
}

var hunkHeader = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// counter tells which lines of a patch are content: as many as the hunk's header announces.
type counter struct{ old, new int }

// header reads a hunk's header.
func (c *counter) header(line []byte) {
	m := hunkHeader().FindSubmatch(line)
	if m == nil {
		return
	}
	count := func(b []byte) int {
		if b == nil {
			return 1
		}
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return 0
		}
		return n
	}
	c.old, c.new = count(m[1]), count(m[2])
}

// content reports whether the line belongs to the current hunk.
func (c *counter) content(line []byte) bool {
	if c.old <= 0 && c.new <= 0 || len(line) == 0 {
		return false
	}
	switch line[0] {
	case ' ', '\n':
		c.old--
		c.new--
	case '\r':
		if string(line) != "\r\n" {
			c.old, c.new = 0, 0
			return false
		}
		c.old--
		c.new--
	case '-':
		c.old--
	case '+':
		c.new--
	case '\\':
	default:
		c.old, c.new = 0, 0
		return false
	}
	return true
}

// headersWithoutCR removes carriage returns from lines that are not content. In content, they belong to the files.
func headersWithoutCR(patch []byte) []byte {
	if !bytes.Contains(patch, []byte("\r\n")) {
		return patch
	}
	out := make([]byte, 0, len(patch))
	c := counter{}
	for line := range bytes.Lines(patch) {
		if c.content(line) && line[0] != '\\' {
			out = append(out, line...)
			continue
		}
		if rest, ok := bytes.CutSuffix(line, []byte("\r\n")); ok {
			line = append(rest[:len(rest):len(rest)], '\n')
		}
		c.header(line)
		out = append(out, line...)
	}
	return out
}

// Canonical returns the part without details that do not change its effect.
func (p Part) Canonical() string {
	f := *p.File
	f.OldOIDPrefix, f.NewOIDPrefix, f.Score = "", "", 0
	f.TextFragments = slices.Clone(f.TextFragments)
	for i, t := range f.TextFragments {
		c := *t
		c.Comment = ""
		f.TextFragments[i] = &c
	}
	f.ReverseBinaryFragment = nil
	text := f.String()
	if f.BinaryFragment != nil {
		// A delta applies only to the blob in the index line.
		text = p.File.OldOIDPrefix + "\x00" + text
	}
	return text
}
