package repro

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/image"
	"github.com/benchgraph/benchgraph/shell"
)

// pip installs into the image's own Python, whose packages an image may change.
const pip = "PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --no-cache-dir "

// image writes how an image is made: what it begins with, then each step as a container that is committed. The result
// is a directory with image.json, as in the store.
func (s *script) image(v *hclspec.Image) error {
	if err := s.imageBase(v); err != nil {
		return err
	}
	fixes := s.fixes(v.Address, v.Candidate, v.Fixes)
	for _, f := range fixes {
		if err := s.needTexts(append(f.Run, fileTexts(f)...)...); err != nil {
			return err
		}
	}
	if err := s.needAll(v.Install...); err != nil {
		return err
	}
	s.line(`site() { docker run --rm --entrypoint python3 "$1" -c 'import sysconfig; ` +
		`print(sysconfig.get_path("purelib"))' 2>/dev/null || true; }`)
	s.line(`commit() { docker start -a "$c" >&2; id=$(docker commit "$c"); docker rm "$c" >/dev/null; }`)
	if len(v.Install) > 0 {
		s.line(`c=$(docker create --network none --entrypoint sh "$id" -euc %s)`,
			shell.Quote(pip+`--no-index --no-deps --force-reinstall $(find /benchgraph-install -name "*.whl")`))
		for _, w := range v.Install {
			s.line(`docker cp "$%s/." "$c:/benchgraph-install"`, s.places[w])
		}
		s.line("commit")
	}
	if err := s.imageOverlay(v.Overlay); err != nil {
		return err
	}
	s.line(`site=$(site "$id")`)
	for _, f := range fixes {
		s.fixImage(f)
	}
	network := ""
	if !v.Network {
		network = " --network none"
	}
	if words := s.argv(v.Verify); words != "" {
		s.line(`docker run --rm%s --env "SITE=$site" --entrypoint %s >&2`, network, words)
	}
	name := s.dir()
	s.line(`printf '  "id": "%%s",\n  "site": "%%s"\n' "$id" "$site" >"$%s/image.json"`, name)
	s.places[v.Address] = name
	return nil
}

// imageBase writes how the image that another begins with comes into the engine; $id is its ID.
func (s *script) imageBase(v *hclspec.Image) error {
	switch {
	case v.Build != nil:
		s.comment("%s, from a Dockerfile of the project", v.Address)
		line := fmt.Sprintf("id=$(docker build -q -f %s", shell.Quote(filepath.Join(s.Spec.Dir, v.Build.Context,
			v.Build.Dockerfile)))
		for _, arg := range sortedKeys(v.Build.Args) {
			line += " --build-arg " + shell.Quote(arg+"="+v.Build.Args[arg])
		}
		if v.Build.Target != "" {
			line += " --target " + shell.Quote(v.Build.Target)
		}
		s.line("%s %s)", line, shell.Quote(filepath.Join(s.Spec.Dir, v.Build.Context)))
	case v.Base.Kind == "image":
		if err := s.enter(v.Base); err != nil {
			return err
		}
		s.comment("%s", v.Address)
		s.line(`id=$%s_id`, s.places[v.Base])
	case v.Base != hclspec.Address{}:
		if err := s.need(v.Base); err != nil {
			return err
		}
		s.comment("%s", v.Address)
		s.line(`id=$(docker import "$(find "$%s" -type f)")`, s.places[v.Base])
	default:
		ref, refs := v.From, shell.Quote(v.From)
		if pinned := s.Lock.Images[v.From]; pinned.Digest != "" {
			ref = image.Base{Name: v.From, Digest: pinned.Digest}.Ref()
			refs = shell.Quote(ref) + " " + shell.Quote(pinned.Digest) // an image that no registry has is pinned by its ID
		}
		s.comment("%s", v.Address)
		s.line(`inspect() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null; }`)
		s.line(`id=; for ref in %s; do id=$(inspect "$ref") && break || :; done`, refs)
		s.line(`[ -n "$id" ] || { docker pull -q %s >&2; id=$(inspect %s); }`, shell.Quote(ref), shell.Quote(ref))
	}
	return nil
}

// imageOverlay writes how files of a source tree are laid over a package that the image has. Outside of the overlay's
// paths the trees are equal, so that every file that differs is one of the overlay.
func (s *script) imageOverlay(o *hclspec.ImageOverlay) error {
	if o == nil {
		return nil
	}
	if err := s.needAll(o.Source, o.Over); err != nil {
		return err
	}
	s.line(`new=$%s old=$%s gone=`, s.places[o.Source], s.places[o.Over])
	s.line(`place() { m=${1#src/}; m=${m#python/}; docker run --rm --entrypoint python3 "$id" -c 'import os, sys
from importlib.util import find_spec
s = find_spec(sys.argv[1].split("/")[0].split(".")[0])
d = s.submodule_search_locations
print(os.path.join(os.path.dirname(os.path.realpath(list(d)[0] if d else s.origin)), sys.argv[1]))' "$m" 2>/dev/null; }`)
	s.line(`for f in $(cd "$old" && find . -type f | cut -c3-); do [ -e "$new/$f" ] || gone="$gone $(place "$f" || ` +
		`:)"; done`)
	s.line(`c=$(docker create --network none --user 0:0 --entrypoint sh "$id" -euc 'rm -f -- "$@"' sh $gone)`)
	s.line(`for f in $(cd "$new" && find . -type f | cut -c3-); do`)
	s.line(`	cmp -s "$new/$f" "$old/$f" || ! at=$(place "$f") || docker cp "$new/$f" "$c:$at"`)
	s.line(`done`)
	s.line("commit")
	return nil
}

// fixImage writes a fix as one more layer.
func (s *script) fixImage(f hclspec.FixCase) {
	s.inside = &inside{site: "site"}
	defer func() { s.inside = nil }()
	var commands []string
	if len(f.Pip) > 0 {
		words := make([]string, len(f.Pip))
		for i, p := range f.Pip {
			words[i] = shell.Quote(p)
		}
		commands = append(commands, pip+"-- "+strings.Join(words, " "))
	}
	for _, run := range f.Run {
		commands = append(commands, run.Expand(func(hclspec.Address) string { return "" }))
	}
	env := ` --env "SITE=$site"`
	for _, name := range sortedKeys(f.Env) {
		env += " --env " + shell.Quote(name+"=") + s.words(f.Env[name])
	}
	s.line(`c=$(docker create%s --entrypoint sh "$id" -euc %s)`, env, shell.Quote(strings.Join(append(commands, ":"), "\n")))
	s.inside = nil
	for i, file := range f.Files {
		to := `"$(printf %s ` + shell.Quote(file.To.Expand(func(hclspec.Address) string {
			return ""
		})) + ` | sed "s|\$SITE|$site|g")"`
		from := fmt.Sprintf(`"$work/fix-file-%d"`, i)
		if file.From != nil {
			s.line(`cp %s %s`, s.words(file.From), from)
		} else {
			s.line(`printf %%s %s >%s`, shell.Quote(file.Content), from)
		}
		s.line(`docker cp %s "$c:"%s`, from, to)
	}
	s.line("commit")
	if len(f.Env) > 0 {
		s.line(`c=$(docker create%s --entrypoint true "$id"); commit`, env)
	}
	if words := s.argv(f.Verify); words != "" {
		s.line(`docker run --rm --env "SITE=$site" --entrypoint %s >&2`, words)
	}
}

// argv is a command after --entrypoint, with the image between the program and its arguments; empty: no command.
func (s *script) argv(c hclspec.Command) string {
	var words []string
	switch {
	case c.Shell != nil:
		words = []string{"sh", "-euc", s.literal(c.Shell)}
	case c.Argv != nil:
		for _, w := range c.Argv {
			words = append(words, s.words(w))
		}
	default:
		return ""
	}
	return strings.Join(append([]string{words[0], `"$id"`}, words[1:]...), " ")
}

// fileTexts are the texts in which the files of a fix refer to other nodes.
func fileTexts(f hclspec.FixCase) []hclspec.Text {
	var texts []hclspec.Text
	for _, file := range f.Files {
		texts = append(texts, file.From, file.To)
	}
	return texts
}

// embed writes a file into the script, so that the script needs nothing of the project. path is a word of the shell.
func (s *script) embed(path string, content []byte) {
	if text := string(content); strings.HasSuffix(text, "\n") && !strings.Contains(text, "\x00") {
		end := "END"
		for strings.Contains(text, end) {
			end += "_"
		}
		s.line("cat >%s <<'%s'\n%s%s", path, end, text, end)
		return
	}
	s.line("base64 -d >%s <<'END'\n%s\nEND", path, base64.StdEncoding.EncodeToString(content))
}
