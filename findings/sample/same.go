package sample

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/glob"
)

// CheckDir is the directory, within that of a member, with the files that its check wrote to $OUT.
const CheckDir = "check"

// Rules of checks.
const (
	Wrong       = "wrong"        // the candidate's outputs do not agree with the baseline's, or its check failed
	CheckFailed = "check_failed" // the check failed for the baseline, so it tells nothing about others
)

// Same selects the files of a check that two members must have in common.
type Same struct {
	Pattern   string  // doublestar, below $OUT of the check, or else of the measured command
	Tolerance float64 // largest relative difference of two numbers; 0: equal bytes
	Passes    int     // passes of the measured command; each is compared with the same pass of the baseline
}

// longestWord bounds the length of a word, which is held in memory.
const longestWord = 64 << 10

// Differ returns the first difference between the files of a candidate and those of the baseline that match, each given
// by the directory of the member in a block; empty: they agree. If no file of the baseline matches, the error wraps
// fs.ErrNotExist.
func Differ(candidate, baseline string, same Same) (string, error) {
	theirs, err := matching(baseline, same)
	if err != nil {
		return "", err
	}
	if len(theirs) == 0 {
		return "", fmt.Errorf("the baseline left no file that matches %q: %w", same.Pattern, fs.ErrNotExist)
	}
	own, err := matching(candidate, same)
	if err != nil {
		return "", err
	}
	for _, name := range own {
		if !slices.Contains(theirs, name) {
			return name + " was not left by the baseline", nil
		}
	}
	for _, name := range theirs {
		if !slices.Contains(own, name) {
			return name + " is missing", nil
		}
		diff, err := differ(candidate, baseline, name, same.Tolerance)
		if diff != "" || err != nil {
			return diff, err
		}
	}
	return "", nil
}

// matching lists the files of a member that match, relative to its directory: files of the check or, if the check left
// none, of all passes of the measured command.
func matching(member string, same Same) ([]string, error) {
	names, err := matchingIn(member, CheckDir, same.Pattern)
	if err != nil || len(names) > 0 {
		return names, err
	}
	for _, dir := range passDirs(same.Passes) {
		more, err := matchingIn(member, filepath.Join(dir, OutDir), same.Pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

func matchingIn(member, dir, pattern string) (names []string, err error) {
	root := filepath.Join(member, dir)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil && glob.Match([]string{pattern}, filepath.ToSlash(name)) {
			names = append(names, filepath.Join(dir, name))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// differ returns the first difference between one file of both sides.
func differ(candidate, baseline, name string, tolerance float64) (string, error) {
	own, err := os.OpenInRoot(candidate, name)
	if err != nil {
		return "", err
	}
	defer own.Close()
	theirs, err := os.OpenInRoot(baseline, name)
	if err != nil {
		return "", err
	}
	defer theirs.Close()
	a, b := newWords(own), newWords(theirs)
	for {
		x, xErr := a.next()
		y, yErr := b.next()
		switch {
		case xErr == io.EOF && yErr == io.EOF:
			return "", nil
		case xErr != nil && xErr != io.EOF:
			return "", xErr
		case yErr != nil && yErr != io.EOF:
			return "", yErr
		case xErr != nil || yErr != nil || !agree(x, y, tolerance):
			return fmt.Sprintf("%s, line %d: %s against %s", name, b.line, shortened(x), shortened(y)), nil
		}
	}
}

// agree reports whether two words are equal, or numbers within the tolerance of each other.
func agree(x, y string, tolerance float64) bool {
	if x == y {
		return true
	}
	v, err := strconv.ParseFloat(x, 64)
	w, failed := strconv.ParseFloat(y, 64)
	return tolerance > 0 && err == nil && failed == nil && math.Abs(v-w) <= tolerance*max(math.Abs(v), math.Abs(w))
}

func shortened(word string) string {
	if word == "" {
		return "the end of the file"
	}
	return strconv.Quote(word[:min(len(word), 60)])
}

// words splits a text into numbers and the text between them, in pieces of bounded length.
type words struct {
	r    *bufio.Reader
	line int
}

func newWords(r io.Reader) *words { return &words{bufio.NewReader(r), 1} }

// next returns the next word, or io.EOF at the end.
func (w *words) next() (string, error) {
	var word strings.Builder
	first, err := w.r.ReadByte()
	if err != nil {
		return "", err
	}
	word.WriteByte(first)
	numeric := beginsNumber(first)
	if first == '\n' {
		w.line++
		return "\n", nil
	}
	for word.Len() < longestWord {
		c, err := w.r.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		if c == '\n' || numeric && !inNumber(c) || !numeric && beginsNumber(c) {
			if err := w.r.UnreadByte(); err != nil {
				return "", err
			}
			break
		}
		word.WriteByte(c)
	}
	return word.String(), nil
}

func beginsNumber(c byte) bool { return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' }
func inNumber(c byte) bool     { return beginsNumber(c) || c == 'e' || c == 'E' }
