package repro

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/shell"
)

// running is what is needed to run commands as a node does.
type running struct {
	env     map[string]hclspec.Text
	secrets []string
	data    []hclspec.Data
	files   []string // of the project, laid into the working directory
	fixes   []hclspec.FixCase
	command hclspec.Command
	image   hclspec.Address
	limits  hclspec.Limits
	network bool
	mounts  []hclspec.Mount
	beside  bool // its container is in the network of the server's
	serves  bool // its container is the server's
	caches  []hclspec.Cache
}

// run writes how a command is run in a working directory of its own, and returns the variable of $OUT.
func (s *script) run(at hclspec.Address, r *running, source hclspec.Address) (string, error) {
	if err := s.prepare(r, source); err != nil {
		return "", err
	}
	s.comment("%s", at)
	if err := s.layOut(r, source); err != nil {
		return "", err
	}
	s.invoke(r, r.command, "")
	return "OUT_" + fmt.Sprint(s.dirs), nil
}

// prepare makes all that is referred to.
func (s *script) prepare(r *running, source hclspec.Address) error {
	if err := s.enter(r.image); err != nil {
		return err
	}
	if err := s.need(source); err != nil {
		return err
	}
	texts := append(slices.Clone(r.command.Argv), r.command.Shell)
	for _, name := range sortedKeys(r.env) {
		texts = append(texts, r.env[name])
	}
	for _, f := range r.fixes {
		texts = append(texts, f.Run...)
		texts = append(append(texts, f.Verify.Argv...), f.Verify.Shell)
		for _, file := range f.Files {
			texts = append(texts, file.From, file.To)
		}
	}
	if err := s.needTexts(texts...); err != nil {
		return err
	}
	for _, d := range r.data {
		if err := s.need(d.Ref); err != nil {
			return err
		}
	}
	return nil
}

// layOut makes the working directory and $OUT, and goes there.
func (s *script) layOut(r *running, source hclspec.Address) error {
	dir := s.dir()
	if source != (hclspec.Address{}) {
		s.line(`cp -R "$%s/." "$%s"`, s.places[source], dir)
	}
	for _, name := range r.files {
		if err := s.input(dir, name); err != nil {
			return err
		}
	}
	for _, d := range r.data {
		lay := "lay"
		if d.Tree {
			lay = "lay_tree"
		}
		s.line(`%s "$%s" "$%s/"%s`, lay, s.places[d.Ref], dir, shell.Quote(d.Name))
	}
	s.line(`SRC=$%s; SITE=$SRC; OUT=$work/out%d; OUT_%d=$OUT; mkdir -p "$OUT"; cd "$SRC"`, dir, s.dirs, s.dirs)
	for _, f := range r.fixes {
		s.fix(r, f)
	}
	return nil
}

// maxEmbedded bounds the size of a project's file that a script carries; a larger one is copied from the project.
const maxEmbedded = 256 << 10

// input lays a file of the project into a working directory.
func (s *script) input(dir, name string) error {
	from := filepath.Join(s.Spec.Dir, filepath.FromSlash(name))
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	to := fmt.Sprintf(`"$%s/"%s`, dir, shell.Quote(name))
	s.line(`mkdir -p "$%s/"%s`, dir, shell.Quote(path.Dir(name)))
	if info.Size() > maxEmbedded {
		s.line(`cp %s %s`, shell.Quote(from), to)
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	s.embed(to, content)
	if info.Mode()&0o100 != 0 {
		s.line(`chmod +x %s`, to)
	}
	return nil
}

func (s *script) fix(r *running, f hclspec.FixCase) {
	for _, file := range f.Files {
		to := s.words(file.To)
		s.line(`mkdir -p "$(dirname %s)"`, to)
		if file.From != nil {
			s.line("cp %s %s", s.words(file.From), to)
		} else {
			s.line("printf %%s %s > %s", shell.Quote(file.Content), to)
		}
	}
	if len(f.Env) > 0 {
		merged := map[string]hclspec.Text{}
		for name, t := range r.env {
			merged[name] = t
		}
		for name, t := range f.Env {
			merged[name] = t
		}
		r.env = merged
	}
	for _, run := range f.Run {
		s.invoke(r, hclspec.Command{Shell: run}, "")
	}
	if f.Verify.Shell != nil || f.Verify.Argv != nil {
		s.invoke(r, f.Verify, "")
	}
}

// own are the variables that benchgraph gives to commands.
func own() []string { return []string{"OUT", "SRC", "SITE", "PORT", "CUDA_VISIBLE_DEVICES"} }

// invoke writes one command with its clean environment; suffix is what follows it on the line.
func (s *script) invoke(r *running, c hclspec.Command, suffix string) {
	if r.image != (hclspec.Address{}) {
		s.contain(r, c, suffix)
		return
	}
	home := `"${HOME:-/}"`
	if len(r.caches) > 0 {
		home = `"$caches/home"`
	}
	line := `env -i PATH="$PATH" HOME=` + home + ` LANG="${LANG:-C}"`
	for _, name := range own() {
		line += fmt.Sprintf(` %s="${%s:-}"`, name, name)
	}
	for _, name := range sortedKeys(r.env) {
		line += " " + shell.Quote(name+"=") + s.words(r.env[name])
	}
	for _, m := range r.mounts {
		line += fmt.Sprintf(` %s=%s`, m.Variable, s.source(m))
	}
	for _, name := range r.secrets {
		line += fmt.Sprintf(` %s="${%s:?is a secret: export it first}"`, name, name)
	}
	if c.Argv != nil {
		for _, w := range c.Argv {
			line += " " + s.words(w)
		}
	} else {
		line += " sh -euc " + s.literal(c.Shell)
	}
	s.line("%s%s", line, suffix)
}

// words is a text as one word in which $OUT and the like are expanded, as benchgraph itself does where no shell will.
func (s *script) words(t hclspec.Text) string {
	return s.word(t, func(text string) string {
		var b strings.Builder
		rest := text
		for {
			i := strings.IndexByte(rest, '$')
			if i < 0 {
				break
			}
			name, n := variable(rest[i+1:])
			if !slices.Contains(own(), name) {
				b.WriteString(shell.Quote(rest[:i+1]))
				rest = rest[i+1:]
				continue
			}
			b.WriteString(shell.Quote(rest[:i]) + s.variable(name))
			rest = rest[i+1+n:]
		}
		return b.String() + shell.Quote(rest)
	})
}

// variable reads the name after a $, and how many bytes it takes.
func variable(text string) (string, int) {
	name := ""
	os.Expand("$"+text, func(n string) string {
		if name == "" {
			name = n
		}
		return ""
	})
	if strings.HasPrefix(text, "{") {
		return name, len(name) + 2
	}
	return name, len(name)
}

func (s *script) word(t hclspec.Text, text func(string) string) string {
	var b strings.Builder
	for _, part := range t {
		if part.Ref == (hclspec.Address{}) {
			b.WriteString(text(part.Literal))
			continue
		}
		name := s.places[part.Ref]
		if s.inside != nil {
			b.WriteString(s.inside.path(name, part.Ref.Kind == "fetch"))
			continue
		}
		if part.Ref.Kind == "fetch" {
			fmt.Fprintf(&b, `"$(find "$%s" -type f)"`, name)
		} else {
			fmt.Fprintf(&b, `"$%s"`, name)
		}
	}
	if b.Len() == 0 {
		return "''"
	}
	return b.String()
}

// trial writes one lifecycle of every member of a block, and the canary before each and after the last.
func (s *script) trial(at hclspec.Address) error {
	group, _ := at.Trial()
	var members []*hclspec.Benchmark
	baseline := 0
	for i := range s.Spec.Benchmarks {
		b := &s.Spec.Benchmarks[i]
		commit, variant, _ := strings.Cut(b.Candidate, "/")
		if b.Address.Name != at.Name || group != commit && group != b.Candidate && group != b.Address.Key {
			continue
		}
		if s.LeftOut != nil && s.LeftOut(b.Address) {
			continue
		}
		if slices.ContainsFunc(s.Spec.Variants, func(v hclspec.Variant) bool {
			return v.Baseline && v.Name == variant
		}) {
			baseline = len(members)
		}
		members = append(members, b)
	}
	if len(members) == 0 {
		return fmt.Errorf("%s: no benchmark of the file belongs to it", at)
	}
	if g := members[baseline].GPUs; g != nil && g.SMClock > 0 {
		s.comment("The SM clock of the devices is locked: as root, nvidia-smi --id=$CUDA_VISIBLE_DEVICES "+
			"--lock-gpu-clocks=%d, and --reset-gpu-clocks afterwards", g.SMClock)
	}
	for _, b := range members {
		if err := s.canary(members[baseline]); err != nil {
			return err
		}
		if err := s.sample(b); err != nil {
			return err
		}
	}
	return s.canary(members[baseline])
}

// canary writes one run of a block's canary, which has the place of its baseline.
func (s *script) canary(b *hclspec.Benchmark) error {
	if b.Canary == nil {
		return nil
	}
	r := &running{env: b.Env, secrets: b.Secrets, command: b.Canary.Command, image: b.Image, limits: b.Limits,
		network: b.Network, mounts: s.mounts(b.Mounts)}
	_, err := s.run(b.Address, r, b.Client)
	return err
}

// sample writes one sample: fill the caches where they are not, start the server, warm up, run the command, stop.
func (s *script) sample(b *hclspec.Benchmark) error {
	filled := ""
	if len(b.Caches) > 0 {
		fill := b.Address
		fill.Kind = "fill"
		if err := s.need(fill); err != nil {
			return err
		}
		filled = s.places[fill]
	}
	s.comment("%s: one sample", b.Address)
	err := s.lifecycle(b, filled, func(r *running) {
		for range b.Design.Warmup {
			s.invoke(r, b.Command, " > /dev/null # warm-up")
		}
		for i := range b.Design.Passes() {
			mark := ""
			if n := b.Design.Passes(); n > 1 {
				mark = fmt.Sprintf(" # pass %d of %d: the sample is their mean", i+1, n)
			}
			s.invoke(r, b.Command, mark)
		}
	})
	s.places[b.Address] = fmt.Sprintf("OUT_%d", s.dirs)
	return err
}

// lifecycle writes the start of a benchmark's server, with copies of the caches that a fill left, what runs then, and
// the end.
func (s *script) lifecycle(b *hclspec.Benchmark, filled string, runs func(r *running)) error {
	r := &running{env: b.Env, secrets: b.Secrets, data: b.Data, command: b.Command, image: b.Image, limits: b.Limits,
		network: b.Network, mounts: s.mounts(b.Mounts)}
	if r.image == (hclspec.Address{}) {
		r.fixes = s.fixes(b.Address, b.Candidate, b.Fixes)
	} else if b.Server != nil {
		r.image, r.beside = s.clientImage(b), true
	}
	if err := s.prepare(r, b.Client); err != nil {
		return err
	}
	var server *running
	if b.Server != nil {
		merged := map[string]hclspec.Text{}
		for _, env := range []map[string]hclspec.Text{b.Env, b.Server.Env} {
			for name, t := range env {
				merged[name] = t
			}
		}
		server = &running{env: merged, secrets: b.Secrets, command: b.Server.Command, data: b.Data, image: b.Image,
			limits: b.Limits, network: b.Network, serves: true, mounts: s.mounts(b.Mounts)}
		if err := s.prepare(server, hclspec.Address{}); err != nil {
			return err
		}
	}
	s.line("PORT=${PORT:-8123}")
	s.layCaches(s.caches(b), filled)
	if !r.beside {
		r.caches = s.caches(b)
	}
	if server != nil {
		server.caches = s.caches(b)
	}
	if server != nil && r.beside {
		if err := s.layOut(server, hclspec.Address{}); err != nil {
			return err
		}
		s.start(server, b.Server)
	}
	if err := s.layOut(r, b.Client); err != nil {
		return err
	}
	if server != nil && !r.beside {
		s.start(server, b.Server)
	}
	runs(r)
	switch {
	case r.beside:
		s.line(`docker rm -f "$server" > /dev/null; wait; trap - EXIT`)
	case server != nil:
		s.line(`kill "$server"; wait "$server" || true; trap - EXIT`)
	}
	return nil
}

// start writes how a server is started and waited for.
func (s *script) start(r *running, spec *hclspec.Server) {
	if r.image != (hclspec.Address{}) {
		s.startInside(r, spec)
		return
	}
	s.invoke(r, spec.Command, ` > "$OUT/server.log" 2>&1 &`)
	s.line(`server=$!; trap 'kill "$server" 2>/dev/null || true' EXIT`)
	ready := `nc -z 127.0.0.1 "$PORT"`
	switch {
	case spec.HTTP != "":
		ready = `curl -fsS -o /dev/null "http://127.0.0.1:$PORT"` + shell.Quote(spec.HTTP)
	case spec.Log != "":
		ready = `grep -Eq -e ` + shell.Quote(spec.Log) + ` "$OUT/server.log"`
	}
	s.line(`until %s 2>/dev/null; do kill -0 "$server" || { echo "the server died" >&2; exit 1; }; sleep 0.2; done`,
		ready)
}
