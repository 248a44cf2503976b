package git

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// PatchError says why a patch was refused. A refused patch leaves nothing behind.
type PatchError struct {
	File   string // that the patch wants to change; empty: the patch as a whole is at fault
	Hunk   int    // of the file, from 1; 0: not one hunk is at fault
	Line   int    // of the patch, from 1: where the hunk, or what cannot be read, begins; 0: unknown
	Reason string
}

func (e *PatchError) Error() string {
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

const (
	maxPatch = 64 << 20
	typeBits = 0o170000
)

// part is what a patch does to one file.
type part struct {
	file  *gitdiff.File
	line  int   // of the patch where it begins
	hunks []int // lines of the patch where its hunks begin
}

// name is what the part is called in errors.
func (p part) name() string {
	if p.file.NewName != "" && p.file.NewName != os.DevNull {
		return p.file.NewName
	}
	return p.file.OldName
}

// touches is what the part changes, makes or removes.
func (p part) touches() []string {
	var paths []string
	if !p.file.IsNew && !p.file.IsCopy && p.file.OldName != "" {
		paths = append(paths, p.file.OldName)
	}
	if !p.file.IsDelete && p.file.NewName != "" && !slices.Contains(paths, p.file.NewName) {
		paths = append(paths, p.file.NewName)
	}
	return paths
}

// TouchedPaths lists what a patch changes, makes or removes, sorted. A patch that is empty, cannot be read or reaches
// where no patch may is a *PatchError.
func TouchedPaths(patch []byte) ([]string, error) {
	parts, err := parsePatch(patch)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range parts {
		paths = append(paths, p.touches()...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

var parseErrorLine = regexp.MustCompile(`^gitdiff: line (\d+): `)

// parsePatch reads a patch and refuses what no patch may do.
func parsePatch(patch []byte) ([]part, error) {
	readings, err := readPatch(patch)
	if err != nil {
		return nil, err
	}
	return readings[0].parts, nil
}

// reading is one way to take a patch.
type reading struct {
	text  []byte
	parts []part
}

// readPatch reads a patch in every way that makes sense, at least one. There are two when its headers end in CR LF:
// whoever saved it so either changed all line ends, or only those that are not part of the files.
func readPatch(patch []byte) ([]reading, error) {
	if len(patch) > maxPatch {
		return nil, &PatchError{Reason: fmt.Sprintf("over %d MiB", maxPatch>>20)}
	}
	if len(patch) > 0 && patch[len(patch)-1] != '\n' {
		patch = append(patch[:len(patch):len(patch)], '\n') // what programs that trim their output take away
	}
	texts := [][]byte{patch}
	if clean := headersWithoutCR(patch); !bytes.Equal(clean, patch) {
		texts = [][]byte{clean, bytes.ReplaceAll(patch, []byte("\r\n"), []byte("\n"))}
	}
	var readings []reading
	var first error
	for _, text := range texts {
		parts, err := parseText(text)
		if err == nil {
			readings = append(readings, reading{text, parts})
		} else if first == nil {
			first = err
		}
	}
	if len(readings) == 0 {
		return nil, first
	}
	return readings, nil
}

func parseText(patch []byte) ([]part, error) {
	sections := split(patch)
	if len(sections) == 0 {
		if len(bytes.TrimSpace(patch)) == 0 {
			return nil, &PatchError{Reason: "empty"}
		}
		return nil, &PatchError{Reason: "no difference in it (wanted: the output of git diff)"}
	}
	parts := make([]part, 0, len(sections))
	for _, s := range sections {
		p, err := s.parse()
		if err != nil {
			return nil, err
		}
		if reason := p.forbidden(); reason != "" {
			return nil, &PatchError{File: p.name(), Line: p.line, Reason: reason}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// parse reads one section.
func (s section) parse() (part, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(s.text))
	if err != nil {
		line, reason := s.line, err.Error()
		if at := parseErrorLine.FindStringSubmatch(reason); at != nil {
			n, _ := strconv.Atoi(at[1])
			line, reason = s.line+max(n, 1)-1, strings.TrimPrefix(reason, at[0])
		}
		return part{}, &PatchError{Line: line, Reason: reason}
	}
	if len(files) != 1 {
		return part{}, &PatchError{Line: s.line, Reason: "the header of a file is malformed"}
	}
	p := part{file: files[0], line: s.line, hunks: s.hunks}
	if !s.git {
		// git apply takes off the first component of every name; the parser does so for git's own headers alone.
		for _, name := range []*string{&p.file.OldName, &p.file.NewName} {
			_, rest, ok := strings.Cut(*name, "/")
			if *name != "" && !ok {
				return part{}, &PatchError{File: *name, Line: s.line, Reason: "the name lacks the prefix a/ or b/"}
			}
			*name = rest
		}
	}
	return p, nil
}

// forbidden says what a part does that no patch may.
func (p part) forbidden() string {
	f := p.file
	for _, name := range []string{f.OldName, f.NewName} {
		if name != "" && !inside(name) {
			return "leads out of the tree, or into .git"
		}
	}
	switch {
	case len(p.touches()) == 0:
		return "names no file"
	case f.OldMode&typeBits == 0o160000 || f.NewMode&typeBits == 0o160000:
		return "changes a submodule"
	case f.IsBinary && f.BinaryFragment == nil:
		return "a binary file without its content (wanted: git diff --binary)"
	}
	return ""
}

// section is the part of a patch for one file, from its first line on.
type section struct {
	text  []byte
	line  int
	hunks []int
	git   bool // begins with "diff --git"
}

// split finds the sections of a patch. What stands between them (a mail's text, a signature) is left out.
func split(patch []byte) []section {
	var all []section
	lines := bytes.SplitAfter(patch, []byte("\n"))
	at := func(i int, prefix string) bool { return i < len(lines) && bytes.HasPrefix(lines[i], []byte(prefix)) }
	c := counter{}
	inHeader := false // of a git section: its own --- line begins nothing new
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

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// counter knows which lines of a patch are content: as many as the hunk's header says.
type counter struct{ old, new int }

// header takes note of a hunk's header.
func (c *counter) header(line []byte) {
	m := hunkHeader.FindSubmatch(line)
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

// content says whether the line belongs to the hunk that has begun.
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

// headersWithoutCR takes the carriage returns off the lines that are not content. Content keeps them: they are part of
// the files.
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
