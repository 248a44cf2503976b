// Package repro writes shell scripts that do by hand what a node does: the checkout, the data, the images, the
// environment and the commands, without benchgraph.
//
// A script makes all that the node needs, so that it runs on another machine. On the machine where it was written it
// takes the results that the store has, unless FROM_SCRATCH is set. Every text of the project's files is quoted: a
// script does what the node does and nothing else.
package repro

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// Project is what scripts are written from.
type Project struct {
	Spec   *hclspec.Spec
	Lock   *hclspec.Lock
	Stored func(hclspec.Address) (dir string, ok bool) // where a node's result is

	LeftOut func(hclspec.Address) bool // a benchmark's candidate that is in no block; nil: none is
}

// script is a script in the making.
type script struct {
	Project
	defs   strings.Builder            // functions, one for each node that is needed
	out    strings.Builder            // what is being written: the body of a function, or the main part
	places map[hclspec.Address]string // shell variable that holds the path of a node's result
	makers map[hclspec.Address]string // shell function that sets the variable
	dirs   int
	inside *inside // the container whose command is being written; nil: on the host
}

// Script writes the script of a node. An error means that there is nothing that can be done by hand.
func (p Project) Script(at hclspec.Address) (string, error) {
	s := &script{Project: p, places: map[hclspec.Address]string{}, makers: map[hclspec.Address]string{}}
	if err := s.make(at); err != nil {
		return "", err
	}
	if place := s.places[at]; place != "" {
		s.line(`echo "The result is in $%s" >&2`, place)
	}
	main := s.out.String()
	s.out.Reset()
	s.line("#!/bin/sh")
	s.comment("What benchgraph does for %s, by hand. With FROM_SCRATCH=1 no result of a store is used.", at)
	s.line("set -eu")
	s.line(`work=$(mktemp -d "${TMPDIR:-/tmp}/repro.XXXXXX")`)
	s.line(`echo "Working in $work" >&2`)
	s.comment("lay FROM TO: the one file that a node made, under a name. lay_tree FROM TO: all of it, as a directory.")
	s.line(`lay() { mkdir -p "$(dirname "$2")"; cp "$(find "$1" -type f)" "$2"; chmod u+w "$2"; }`)
	s.line(`lay_tree() { mkdir -p "$2"; cp -R "$1/." "$2"; chmod -R u+w "$2"; }`)
	return s.out.String() + s.defs.String() + main, nil
}

func (s *script) line(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *script) comment(format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	s.line("\n# %s", text)
}

// literal is a text as one word in which no variable is expanded, except the paths of what it refers to.
func (s *script) literal(t hclspec.Text) string { return s.word(t, shell.Quote) }

// dir makes an empty directory and returns the variable that holds its path.
func (s *script) dir() string {
	s.dirs++
	name := fmt.Sprintf("dir%d", s.dirs)
	s.line(`%s=$work/%d; mkdir -p "$%s"`, name, s.dirs, name)
	return name
}

// need makes sure that a node's result is there, by a function that takes it from the store or makes it, once.
func (s *script) need(at hclspec.Address) error {
	if at == (hclspec.Address{}) {
		return nil
	}
	if maker := s.makers[at]; maker != "" {
		s.line("%s", maker)
		return nil
	}
	before := s.out.String()
	s.out.Reset()
	err := s.make(at)
	body := s.out.String()
	s.out.Reset()
	s.out.WriteString(before)
	stored, ok := "", false
	if at.Kind != "source" && at.Kind != "repo" {
		stored, ok = s.Stored(at)
	}
	if err != nil && !ok {
		return err
	}
	maker := fmt.Sprintf("need_%d", len(s.makers)+1)
	name := fmt.Sprintf("node_%d", len(s.makers)+1)
	s.makers[at] = maker
	fmt.Fprintf(&s.defs, "\n%s() {\n[ -z \"${%s-}\" ] || return 0\n", maker, name)
	if ok {
		fmt.Fprintf(&s.defs, "if [ -z \"${FROM_SCRATCH-}\" ] && [ -d %s ]; then %s=%s; return 0; fi\n", shell.Quote(stored),
			name, shell.Quote(stored))
	}
	if err != nil {
		fmt.Fprintf(&s.defs, "echo %s >&2\nexit 1\n}\n", shell.Quote(err.Error()))
	} else {
		fmt.Fprintf(&s.defs, "%s%s=$%s\n}\n", body, name, s.places[at])
	}
	s.places[at] = name
	s.line("%s", maker)
	return nil
}

// needTexts makes sure that all is there that texts refer to.
func (s *script) needTexts(texts ...hclspec.Text) error {
	for _, t := range texts {
		if err := s.needAll(t.Refs()...); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) needAll(list ...hclspec.Address) error {
	for _, at := range list {
		if err := s.need(at); err != nil {
			return err
		}
	}
	return nil
}

// find is the declared instance of an address.
func find[T any](list []T, address func(*T) hclspec.Address, at hclspec.Address) (*T, bool) {
	i := slices.IndexFunc(list, func(v T) bool { return address(&v) == at })
	if i < 0 {
		return nil, false
	}
	return &list[i], true
}

// make writes how a node is made.
func (s *script) make(at hclspec.Address) error {
	spec := s.Spec
	if v, ok := find(spec.Repos, func(v *hclspec.Repo) hclspec.Address { return v.Address }, at); ok {
		s.clone(v)
		return nil
	}
	if v, ok := find(spec.Sources, func(v *hclspec.Source) hclspec.Address { return v.Address }, at); ok {
		return s.checkout(v)
	}
	if v, ok := find(spec.Fetches, func(v *hclspec.Fetch) hclspec.Address { return v.Address }, at); ok {
		s.download(v)
		return nil
	}
	if v, ok := find(spec.Wheels, func(v *hclspec.Wheel) hclspec.Address { return v.Address }, at); ok {
		return s.wheel(v)
	}
	if v, ok := find(spec.Tasks, func(v *hclspec.Task) hclspec.Address { return v.Address }, at); ok {
		return s.task(v)
	}
	if v, ok := find(spec.Benchmarks, func(v *hclspec.Benchmark) hclspec.Address { return v.Address }, at); ok {
		return s.sample(v)
	}
	if v, ok := find(spec.Images, func(v *hclspec.Image) hclspec.Address { return v.Address }, at); ok {
		return s.image(v)
	}
	switch at.Kind {
	case "trial":
		return s.trial(at)
	case "fill":
		return s.fill(at)
	}
	return fmt.Errorf("%s: nothing is run for a %s, so there is nothing to do by hand", at, at.Kind)
}

func (s *script) clone(r *hclspec.Repo) {
	location := r.URL
	if location == "" {
		location = r.Path
		if !filepath.IsAbs(location) {
			location = filepath.Join(s.Spec.Dir, location)
		}
	}
	s.comment("%s", r.Address)
	name := s.dir()
	s.line(`git clone -q --no-checkout %s "$%s"`, shell.Quote(location), name)
	s.line(`echo '* -text !eol -ident -filter !working-tree-encoding -whitespace' >"$%s/.git/info/attributes"`, name)
	s.places[r.Address] = name
}

// checkout lays out the tree of a revision as git stores it, with its patch.
func (s *script) checkout(v *hclspec.Source) error {
	if err := s.need(v.Repo); err != nil {
		return err
	}
	s.comment("%s", v.Address)
	name := s.dir()
	s.line(`(cd "$%s" && export GIT_INDEX_FILE="$work/index" && git read-tree %s && git checkout-index -a `+
		`--prefix="$%s/")`,
		s.places[v.Repo], shell.Quote(v.Rev), name)
	if v.Patch != "" {
		patch, err := os.ReadFile(s.Spec.Path(v.Patch))
		if err != nil {
			return err
		}
		s.embed(`"$work/patch"`, patch)
		s.line(`(cd "$%s" && git apply "$work/patch")`, name)
	}
	s.places[v.Address] = name
	return nil
}

func (s *script) download(v *hclspec.Fetch) {
	s.comment("%s", v.Address)
	name := s.dir()
	file := "download"
	if base := filepath.Base(v.URL); base != "." && base != "/" && !strings.ContainsAny(base, "?#&") {
		file = base
	}
	s.line(`curl -fL -o "$%s/"%s %s`, name, shell.Quote(file), shell.Quote(v.URL))
	if v.SHA256 != "" {
		s.line(`printf '%%s  %%s\n' %s "$%s/"%s | sha256sum -c -`, shell.Quote(v.SHA256), name, shell.Quote(file))
	}
	s.places[v.Address] = name
}

func (s *script) wheel(v *hclspec.Wheel) error {
	src, _ := find(s.Spec.Sources, func(v *hclspec.Source) hclspec.Address { return v.Address }, v.Source)
	patched := src != nil && src.Patch != "" // a prebuilt wheel holds no patch, and a script lays nothing into wheels
	if served := s.Lock.Wheels[v.Address.Name][v.Address.Key]; !patched && slices.Contains(v.Prebuilt, served) {
		s.comment("%s, which is prebuilt", v.Address)
		name := s.dir()
		s.line(`(cd "$%s" && curl -fLO %s)`, name, shell.Quote(served))
		s.places[v.Address] = name
		return nil
	}
	if v.Build == nil {
		return fmt.Errorf("%s: no prebuilt source of it is known to serve, and it declares no build", v.Address)
	}
	b := v.Build
	run := &running{env: b.Env, secrets: b.Secrets, command: b.Command, image: b.Image, limits: b.Limits,
		network: b.Network, mounts: s.mounts(b.Mounts),
		files: b.Inputs, fixes: s.fixes(v.Address, v.Candidate, v.Fixes, b.Fixes)}
	name, err := s.run(v.Address, run, v.Source)
	s.results(v.Outputs)
	s.places[v.Address] = name
	return err
}

func (s *script) results(patterns []string) {
	if len(patterns) > 0 {
		s.line("# Of what is in $OUT, these are the result: %q", patterns)
	}
}

func (s *script) task(v *hclspec.Task) error {
	if err := s.needAll(v.Needs...); err != nil {
		return err
	}
	run := &running{env: v.Env, secrets: v.Secrets, command: v.Command, image: v.Image, limits: v.Limits,
		network: v.Network, mounts: s.mounts(v.Mounts), data: v.Data, files: v.Inputs,
		fixes: s.fixes(v.Address, v.Candidate, v.Fixes)}
	name, err := s.run(v.Address, run, v.Source)
	s.results(v.Outputs)
	s.places[v.Address] = name
	return err
}

// fixes are those that apply to a candidate: where the file says so, or the lock file has learnt it. A block that lists
// none may use those that no block lists.
func (s *script) fixes(block hclspec.Address, candidate string, listed ...[]hclspec.Address) []hclspec.FixCase {
	eligible := slices.Concat(listed...)
	commit, _, _ := strings.Cut(candidate, "/")
	var due []hclspec.FixCase
	for i := range s.Spec.Fixes {
		f := &s.Spec.Fixes[i]
		if !slices.Contains(eligible, f.Address) && (len(eligible) > 0 || s.listed(f.Address) || f.InImage &&
			block.Kind != "image") {
			continue
		}
		c, ok := f.Case(block, candidate)
		learnt := slices.ContainsFunc(s.Lock.Fixes[f.Address.Name], func(l hclspec.LearntFix) bool {
			return l.Commit == commit && (l.At == "" || l.At == block.Kind+"."+block.Name)
		})
		if ok && (c.When || learnt) {
			due = append(due, c)
		}
	}
	return due
}

func (s *script) listed(fix hclspec.Address) bool {
	has := func(list []hclspec.Address) bool { return slices.Contains(list, fix) }
	return slices.ContainsFunc(s.Spec.Images, func(i hclspec.Image) bool { return has(i.Fixes) }) ||
		slices.ContainsFunc(s.Spec.Wheels, func(w hclspec.Wheel) bool {
			return has(w.Fixes) || w.Build != nil && has(w.Build.Fixes)
		}) ||
		slices.ContainsFunc(s.Spec.Benchmarks, func(b hclspec.Benchmark) bool { return has(b.Fixes) }) ||
		slices.ContainsFunc(s.Spec.Tasks, func(t hclspec.Task) bool { return has(t.Fixes) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
