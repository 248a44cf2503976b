// Package repro prints the transcript of an attempt as a shell script that does the same by hand, without benchgraph.
//
// The script has directories of its own. It takes inputs from the store, and tells how to get missing ones. Every text
// of a transcript is quoted: a script does what the attempt did and nothing else.
package repro

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// Attempt is the attempt that a script repeats.
type Attempt struct {
	Node    string // address
	Title   string // names the attempt for people
	Section string // of the transcript, by the address of its node; empty: the whole transcript
	*transcript.Transcript
	Stored func(cache.Key) (dir string, ok bool) // returns the directory of a result
}

// script is a script in the making.
type script struct {
	Attempt
	out     strings.Builder
	known   []known         // texts of the transcript with another word in the script
	made    map[string]bool // directories that the script has made
	used    map[string]bool // functions that the script uses, by name
	images  int             // variables that name images
	result  int             // number of the variable with the last image
	aside   bool            // nobody reads the output of the commands
	dir     string          // the script's current directory
	left    string          // directory $OUT of the last command
	servers map[int]bool    // started ones, by number of their step
}

// known is a text of the transcript, with its word in the script.
type known struct{ text, word string }

// Script returns the script of an attempt. It returns an error if there is nothing to do by hand, or if the transcript
// is of another version.
func (a Attempt) Script() (string, error) {
	s := &script{Attempt: a, made: map[string]bool{}, used: map[string]bool{}, servers: map[int]bool{}}
	s.know(a.Work, `"$work"/work`)
	s.know(a.Scratch, `"$work"/scratch`)
	steps, err := s.section()
	if err != nil {
		return "", err
	}
	s.inputs(steps)
	for _, i := range steps {
		if err := s.step(i); err != nil {
			return "", err
		}
	}
	if s.left != "" {
		s.line(`echo "What it left in \$OUT is in "%s >&2`, s.word(s.left))
	}
	if s.result > 0 {
		s.line(`echo "It made the image $image%d" >&2`, s.result)
	}
	return s.head() + s.out.String(), nil
}

// section lists the steps to repeat.
func (s *script) section() (steps []int, err error) {
	section, commands := "", 0
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Title != "" && step.Of != "" {
			section = step.Of
		}
		if s.Section == "" || s.Section == section {
			steps = append(steps, i)
			if s.Steps[i].Title == "" {
				commands++
			}
		}
	}
	if commands == 0 {
		return nil, fmt.Errorf("%s ran no command", s.Title)
	}
	return steps, nil
}

func (s *script) line(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) comment(text string) {
	s.line("# %s", strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}

// know notes that a word stands for a text from now on.
func (s *script) know(text, word string) {
	if text == "" {
		return
	}
	s.known = append(s.known, known{text, word})
	slices.SortStableFunc(s.known, func(a, b known) int { return len(b.text) - len(a.text) })
}

// word returns text as one word of the shell. It replaces known texts within it.
func (s *script) word(text string) string {
	var b strings.Builder
	for rest := text; ; {
		at, found := -1, known{}
		for _, k := range s.known {
			if i := index(rest, k.text); i >= 0 && (at < 0 || i < at) {
				at, found = i, k
			}
		}
		if at < 0 {
			if rest != "" || b.Len() == 0 {
				b.WriteString(quote(rest))
			}
			return b.String()
		}
		if at > 0 {
			b.WriteString(quote(rest[:at]))
		}
		b.WriteString(found.word)
		rest = rest[at+len(found.text):]
	}
}

// quote is sh.Quote for texts that need quotes.
func quote(text string) string {
	if plain().MatchString(text) {
		return text
	}
	return sh.Quote(text)
}

var plain = lazyregexp.New(`^[A-Za-z0-9_./:=,+@%-]+$`)

func (s *script) words(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = s.word(text)
	}
	return strings.Join(words, " ")
}

// index is strings.Index, but skips matches that are the beginning of a longer name.
func index(text, of string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], of)
		if i < 0 {
			return -1
		}
		if end := from + i + len(of); end == len(text) || !inName().MatchString(text[end:end+1]) {
			return from + i
		}
		from += i + 1
	}
}

var inName = lazyregexp.New(`[A-Za-z0-9._-]`)

// inputs names the results and images that the steps use.
func (s *script) inputs(steps []int) {
	var text strings.Builder
	images := map[string]bool{}
	for _, i := range steps {
		step := &s.Steps[i]
		fmt.Fprintf(&text, "%q %q %v", step.Argv, step.Did, step.Files)
		if step.Place < 0 || step.Place >= len(s.Places) {
			continue
		}
		place := &s.Places[step.Place]
		fmt.Fprintf(&text, "%q %+v", place.Env, place.Container)
		if c := place.Container; step.Argv != nil && c != nil && !images[c.Image] {
			s.image(c.Image)
		}
		if step.Image != "" {
			images[step.Image] = true
		}
	}
	number := 0
	for _, in := range s.Inputs {
		if !strings.Contains(text.String(), in.Dir) {
			continue
		}
		dir, ok := s.Stored(in.Key)
		if !ok {
			dir = in.Dir
		}
		number++
		s.used["stored"] = true
		s.line("in%d=$(stored %s %s)", number, sh.Quote(dir), sh.Quote(in.Address))
		s.know(in.Dir, fmt.Sprintf(`"$in%d"`, number))
	}
}

// image makes sure that the engine has an image.
func (s *script) image(id string) {
	if slices.ContainsFunc(s.known, func(k known) bool { return k.text == id }) {
		return
	}
	s.images++
	s.used["engine"] = true
	s.line("image%d=$(engine %s)", s.images, sh.Quote(id))
	s.know(id, fmt.Sprintf(`"$image%d"`, s.images))
}

// step writes one step.
func (s *script) step(i int) error {
	step := &s.Steps[i]
	switch {
	case step.Title != "":
		title := step.Title
		if step.Of != "" {
			title = step.Of + ": " + title
		}
		s.line("")
		s.comment(title)
		s.aside = step.Aside
	case len(step.Did) > 0:
		return s.did(step)
	case step.Stop > 0:
		if s.servers[step.Stop] {
			s.line(`stop %d`, step.Stop)
		}
	case len(step.Argv) == 0 || step.Place < 0 || step.Place >= len(s.Places):
		return fmt.Errorf("step %d of the transcript is damaged", i+1)
	default:
		s.command(i, step, &s.Places[step.Place])
	}
	return nil
}

// did writes an action of benchgraph itself.
func (s *script) did(step *transcript.Step) error {
	verb, rest := step.Did[0], step.Did[1:]
	if !slices.Contains(verbs, verb) {
		return fmt.Errorf("the transcript says %q, which this version does not know", verb)
	}
	s.used[verb] = true
	if verb == "commit" && len(rest) > 0 {
		s.image(rest[0])
	}
	line := verb + " " + s.words(rest)
	if step.Image == "" {
		s.line("%s", line)
		return nil
	}
	s.images++
	s.line("image%d=$(%s)", s.images, line)
	if s.know(step.Image, fmt.Sprintf(`"$image%d"`, s.images)); verb == "commit" {
		s.line("c=")
	}
	s.result = s.images
	return nil
}

// identifier matches names of shell variables.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// command writes a command.
func (s *script) command(i int, step *transcript.Step, place *transcript.Place) {
	s.lay(place)
	if place.Container != nil && place.Container.Keep {
		s.keep(step, place)
		return
	}
	line := ""
	if place.Container != nil {
		line = s.contained(i, step, place)
	} else {
		line = s.hosted(step, place)
	}
	switch {
	case step.Server != nil:
		s.serve(i, step, place, line)
	case s.aside:
		s.line("%s > /dev/null", line)
	default:
		s.line("%s", line)
	}
}

// lay makes the directories of a place.
func (s *script) lay(place *transcript.Place) {
	dirs := []string{place.Dir}
	for _, v := range place.Env {
		name, value, _ := strings.Cut(v, "=")
		if dirs = append(dirs, value); name == "OUT" {
			s.left = value
		} else if name != "HOME" && name != "TMPDIR" {
			dirs = dirs[:len(dirs)-1]
		}
	}
	if o := place.Sandbox; o != nil {
		dirs = append(dirs, o.Home, o.Tmp)
	}
	if c := place.Container; c != nil {
		dirs = nil
		for _, m := range c.Mounts {
			if dirs = append(dirs, m.Host); m.Inside == s.left {
				s.left = m.Host
			}
		}
	}
	made := ""
	for _, dir := range dirs {
		own := func(root string) bool { return root != "" && dir != "" && fs.Below(dir, root) }
		if (own(s.Work) || own(s.Scratch)) && !s.made[dir] {
			s.made[dir] = true
			made += " " + s.word(dir)
		}
	}
	if made != "" {
		s.line("mkdir -p%s", made)
	}
}

// hosted returns a command on the host as a line.
func (s *script) hosted(step *transcript.Step, place *transcript.Place) string {
	if place.Dir != s.dir {
		s.dir = place.Dir
		s.line("cd %s", s.word(place.Dir))
		if text := confined(place); text != "" {
			s.comment("Then" + text)
		}
	}
	env := ""
	for _, v := range place.Env {
		name, _, _ := strings.Cut(v, "=")
		if place.Sandbox == nil || name != "HOME" && name != "TMPDIR" {
			env += " " + s.variable(v)
		}
	}
	if o := place.Sandbox; o != nil { // a sandbox shows them in place of the user's
		env += " " + s.word("HOME="+o.Home) + " " + s.word("TMPDIR="+o.Tmp)
	}
	// The script itself may be on standard input.
	return "env -i" + env + " " + s.words(step.Argv) + " </dev/null"
}

// variable returns a variable as a word: NAME=value. The value of a secret is taken from the script's environment.
func (s *script) variable(v string) string {
	if !strings.Contains(v, "=") {
		if !identifier.MatchString(v) {
			return ""
		}
		return v + `="${` + v + `:?is a secret: export it first}"`
	}
	return s.word(v)
}

// confined returns how a place on the host differed from that of the script; "" if it did not.
func confined(place *transcript.Place) (text string) {
	if o := place.Sandbox; o != nil {
		text = " in a sandbox without a network"
		if o.Network {
			text = " in a sandbox"
		}
	}
	if l := place.Limits; l != nil && l.Memory > 0 {
		text += fmt.Sprintf(" with at most %d bytes of memory", l.Memory)
	}
	if l := place.Limits; l != nil && (l.Cores != "" || l.CPUs > 0) {
		text += fmt.Sprintf(" on %d cores %s", l.CPUs, l.Cores)
	}
	return text
}
