package repro

import (
	"fmt"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// inside is the container that a command is written for: paths in it are fixed, and what the command refers to is
// mounted.
type inside struct {
	site   string   // shell variable
	mounts []string // shell variables of directories that are mounted at /benchgraph/in/VARIABLE
}

// path is where a result is in the container, as one word.
func (i *inside) path(name string, onlyFile bool) string {
	found := false
	for _, m := range i.mounts {
		found = found || m == name
	}
	if !found {
		i.mounts = append(i.mounts, name)
	}
	if onlyFile {
		return fmt.Sprintf(`"/benchgraph/in/%s/$(cd "$%s" && find . -type f)"`, name, name)
	}
	return "/benchgraph/in/" + name
}

// variable is one of benchgraph's own variables as a word of the script.
func (s *script) variable(name string) string {
	if s.inside != nil {
		switch name {
		case "OUT":
			return "/benchgraph/out"
		case "SRC":
			return "/benchgraph/work"
		case "SITE":
			return `"${` + s.inside.site + `:-/benchgraph/work}"`
		}
	}
	return `"${` + name + `:-}"`
}

// enter makes sure that an image is there, and says which one it is.
func (s *script) enter(image hclspec.Address) error {
	if image == (hclspec.Address{}) {
		return nil
	}
	if err := s.need(image); err != nil {
		return err
	}
	name := s.places[image]
	for _, field := range []string{"id", "site"} {
		s.line(`%s_%s=$(sed -n 's/^  "%s": "\(.*\)",*$/\1/p' "$%s/image.json")`, name, field, field, name)
	}
	return nil
}

// contain writes one command that runs in a container of its own.
func (s *script) contain(r *running, c hclspec.Command, suffix string) {
	image := s.places[r.image]
	s.inside = &inside{site: image + "_site"}
	defer func() { s.inside = nil }()
	env := ` --env HOME=/benchgraph/home --env LANG=C.UTF-8 --env USER=benchgraph`
	for _, name := range own() {
		env += " --env " + name + "=" + s.variable(name)
	}
	for _, name := range sortedKeys(r.env) {
		env += " --env " + shell.Quote(name+"=") + s.words(r.env[name])
	}
	for _, name := range r.secrets {
		s.line(`export %s="${%s:?is a secret: export it first}"`, name, name)
		env += " --env " + name
	}
	for _, m := range r.mounts {
		env += " --env " + m.Variable + "=" + shell.Quote(m.Target)
	}
	words := []string{"sh", "-euc", s.literal(c.Shell)}
	if c.Argv != nil {
		words = nil
		for _, w := range c.Argv {
			words = append(words, s.words(w))
		}
	}
	line := `docker run --rm --init --cap-drop ALL --security-opt no-new-privileges --pids-limit 32768 --user "$(id ` +
		`-u):$(id -g)"`
	switch {
	case r.beside:
		line += ` --network "container:$server"`
	case !r.network:
		line += " --network none"
	}
	if r.serves {
		line += ` --name "$server"`
	}
	if r.limits.Memory > 0 {
		line += fmt.Sprintf(" --memory %d --memory-swap %d", r.limits.Memory, r.limits.Memory)
	}
	line += ` -v "$SRC:/benchgraph/work" -v "$OUT:/benchgraph/out" -v "$home:/benchgraph/home" --workdir ` +
		`/benchgraph/work`
	for _, name := range s.inside.mounts {
		line += fmt.Sprintf(` -v "$%s:/benchgraph/in/%s:ro"`, name, name)
	}
	for _, m := range r.mounts {
		line += " --mount " + s.bind(m)
	}
	home := `$(mktemp -d "$work/home.XXXXXX")`
	if len(r.caches) > 0 {
		home = `$caches/home`
	}
	for _, c := range r.caches {
		if !strings.HasPrefix(c.Path, "~/") {
			line += " -v " + place(c) + shell.Quote(":"+c.Path)
		}
	}
	s.line(`home=%s`, home)
	s.line(`%s%s --entrypoint %s "$%s_id" %s%s`, line, env, words[0], image, strings.Join(words[1:], " "), suffix)
}

// startInside writes how a server is started in a container and waited for.
func (s *script) startInside(r *running, spec *hclspec.Server) {
	s.line(`server=repro-$$; server_log=$OUT/server.log; trap 'docker rm -f "$server" > /dev/null 2>&1' EXIT`)
	s.invoke(r, spec.Command, ` > "$server_log" 2>&1 &`)
	ready := `docker exec "$server" sh -c 'grep -qi ": [0-9A-F]*:$(printf %04X "$0") [0-9A-F]*:0000 0A" ` +
		`/proc/net/tcp /proc/net/tcp6' "$PORT"`
	switch {
	case spec.HTTP != "":
		ready = `docker exec "$server" sh -c 'curl -fsS -o /dev/null "$0" || wget -q -O /dev/null "$0" || python3 ` +
			`-c "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])" "$0"' "http://127.0.0.1:$PORT"` +
			shell.Quote(spec.HTTP)
	case spec.Log != "":
		ready = `grep -Eq -e ` + shell.Quote(spec.Log) + ` "$server_log"`
	}
	s.line(`server_pid=$!; until %s 2>/dev/null; do kill -0 "$server_pid" || { echo "the server died" >&2; exit 1; `+
		`}; sleep 0.2; done`, ready)
}

// clientImage is the image of the command that talks to a benchmark's server: that of the group's baseline.
func (s *script) clientImage(b *hclspec.Benchmark) hclspec.Address {
	commit, _, _ := strings.Cut(b.Candidate, "/")
	for i := range s.Spec.Benchmarks {
		other := &s.Spec.Benchmarks[i]
		of, variant, _ := strings.Cut(other.Candidate, "/")
		if other.Address.Name != b.Address.Name || of != commit || other.Image == (hclspec.Address{}) {
			continue
		}
		for _, v := range s.Spec.Variants {
			if v.Name == variant && v.Baseline {
				return other.Image
			}
		}
	}
	return b.Image
}
