package campaign_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/docker"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// imaging is a story with a container engine that other tests use at the same time. Everything that the story makes has
// a unique word in its name; at the end of the test, its images are removed.
type imaging struct {
	*story
	word string // in names of images, and to be in what they are made from
	base string // ID of an image with busybox
}

// picture begins a story with a container engine. In the texts WORD and BASE are replaced.
func picture(t testing.TB, files map[string]string) *imaging {
	t.Helper()
	i := &imaging{story: tell(t, nil), word: "w" + strings.ToLower(rand.Text()[:12])}
	i.engine = containertest.Engine(t)
	i.base = containertest.Busybox(t, i.engine)
	for name, text := range files {
		i.write(name, text)
	}
	t.Cleanup(i.clear)
	return i
}

func (i *imaging) write(name, text string) {
	i.t.Helper()
	i.story.write(name, strings.NewReplacer("WORD", i.word, "BASE", i.base).Replace(text))
}

// mine lists the images that the story made and that are still there, the newest first.
func (i *imaging) mine() []container.Image {
	i.t.Helper()
	all, err := i.engine.Images(i.t.Context())
	must(i.t, err)
	return slices.DeleteFunc(all, func(img container.Image) bool {
		return !strings.Contains(img.Labels[container.LabelNode], i.word)
	})
}

func (i *imaging) clear() {
	for range 20 { // one that others were made from goes after them
		list, err := i.engine.Images(context.Background())
		if err != nil {
			i.t.Log(err)
			continue
		}
		left := 0
		for _, img := range list {
			if !strings.Contains(img.Labels[container.LabelNode], i.word) {
				continue
			}
			if err := i.engine.RemoveImage(context.Background(), img.ID); err != nil {
				i.t.Log(err)
				left++
			}
		}
		if left == 0 {
			return
		}
	}
}

// record is the part of image.json that stories check.
type record struct {
	ID, Chain, Site string
	Env             []string
	Packages        []struct {
		Name, Version, Info, Record string
		Patched                     []string
	}
	Steps []struct{ What, Chain, ID, Skipped string }
}

// image returns the record of the last result of an image node.
func (i *imaging) image(address string) record {
	i.t.Helper()
	var r record
	must(i.t, json.Unmarshal([]byte(i.result(address, "image.json")), &r))
	return r
}

// result returns a file of the last result of a node.
func (i *imaging) result(address, name string) string {
	i.t.Helper()
	var text []byte
	i.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(i.t, err)
		step, _ := plan.Step(address)
		meta, stored := step.Stored()
		if !stored {
			i.t.Fatalf("%s has no result: %s\n%s", address, step.Reason, i.log(address))
		}
		entry, err := p.Store.Get(ctx, meta.Key, true)
		must(i.t, err)
		text, err = os.ReadFile(filepath.Join(entry.Dir, name))
		must(i.t, err)
	})
	return string(text)
}

// log returns the output of the last attempt at a node.
func (i *imaging) log(address string) string {
	i.t.Helper()
	for _, e := range slices.Backward(i.events) {
		if e.Address == address && e.Log != "" {
			text, err := os.ReadFile(e.Log)
			must(i.t, err)
			return string(text)
		}
	}
	i.t.Fatalf("%s has no log", address)
	return ""
}

// inside runs a command in an image and returns what it prints.
func (i *imaging) inside(id string, argv ...string) string {
	i.t.Helper()
	return runIn(i.t, i.engine, id, argv...)
}

// failure returns the failure of a node in the last apply.
func (i *imaging) failure(address string) *failure.Failure {
	i.t.Helper()
	for _, e := range i.events {
		if e.Type == engine.NodeFailed && e.Address == address {
			return e.Failure
		}
	}
	for _, e := range i.events {
		i.t.Log(e.Type, e.Address, e.Reason)
	}
	i.t.Fatalf("%s did not fail", address)
	return nil
}

const steps = `
image "WORD" {
  from   = "BASE"
  fixes  = [fix.greeting, fix.name]
  verify = "test \"$(cat /etc/greeting)\" = \"hello world\" && test \"$NAME\" = world"
}
fix "name" {
  run    = ["sed -i s/nobody/world/ /etc/greeting"]
  env    = { NAME = "world" }
  after  = [fix.greeting]
  verify = "grep -q world /etc/greeting"
}
fix "greeting" {
  run = ["echo WORD > /etc/word"]
  file {
    content = "hello nobody"
    to      = "/etc/greeting"
  }
  verify = "test -f /etc/greeting"
}
`

func TestAnImageIsMadeInStepsThatAreFoundAgain(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{"benchmarks.hcl": steps})
	node := "image." + s.word
	if r := s.apply(); r.Result.Done != 1 {
		t.Fatalf("%+v\n%s", r.Result, s.log(node))
	}
	first := s.image(node)
	if got := s.inside(first.ID, "sh", "-c", "cat /etc/greeting; echo $NAME"); got != "hello worldworld\n" {
		t.Errorf("in the image: %q", got)
	}
	if len(first.Steps) != 3 || len(s.mine()) != 2 {
		t.Errorf("%d images, steps %+v", len(s.mine()), first.Steps)
	}
	img, err := s.engine.Image(t.Context(), first.ID)
	must(t, err)
	for name, want := range map[string]string{
		container.LabelKey: first.Chain, container.LabelNode: node, "org.opencontainers.image.base.digest": s.base,
		container.LabelOwner: "",
	} {
		if img.Labels[name] != want {
			t.Errorf("label %s is %q, want %q", name, img.Labels[name], want)
		}
	}
	if slices.ContainsFunc(img.Env, func(v string) bool {
		return strings.HasPrefix(v, "SITE") || strings.HasPrefix(v, "SRC")
	}) || slices.Contains(img.Command, "-euc") {
		t.Errorf("what a step was run with is in the image: %q %q", img.Env, img.Command)
	}

	s.apply()
	if ran := s.ran(); len(ran) > 0 {
		t.Errorf("the second apply ran %q", ran)
	}

	// The local state is lost: nothing is made again.
	must(t, fs.RemoveTree(filepath.Join(s.dir, ".benchgraph")))
	s.apply()
	again := s.image(node)
	if again.ID != first.ID || strings.Count(s.log(node), "found in the engine") != 2 || len(s.mine()) != 2 {
		t.Errorf("made again as %+v:\n%s", again, s.log(node))
	}

	// The image is lost: it is made again only when something needs it.
	s.clear()
	s.write("benchmarks.hcl", steps+"task \"t\" {\n  needs = [image.WORD]\n command = \"echo t > $OUT/t\"\n}\n")
	s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{node, "task.t"}) {
		t.Errorf("ran %q", ran)
	}
	s.clear()
	s.apply()
	if ran := s.ran(); len(ran) > 0 {
		t.Errorf("the image is gone and all that uses it up to date, but %q ran", ran)
	}
}

// An image that somebody makes from an image of ours inherits its labels, so labels alone do not make it ours.
func TestAnImageIsNotKnownByItsLabelAlone(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"steps": steps, "a Dockerfile": `image "WORD" {
  build { context = "docker" }
  network = true # Podman builds nothing without
}
`, "a task": `task "root" {
  command = <<-SH
    mkdir -p bin etc
    cp /bin/busybox bin/
    ln -s busybox bin/cat
    echo -n hello world > etc/greeting
    echo WORD > etc/word
    tar --mtime=@0 -cf $OUT/root.tar bin etc
  SH
}
image "WORD" { from = task.root }
`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := picture(t, map[string]string{"benchmarks.hcl": file,
				"docker/Dockerfile": "FROM BASE\nRUN echo -n hello world >/etc/greeting; echo WORD >/etc/word\n"})
			node := "image." + s.word
			done := s.apply().Result.Done
			first := s.image(node)
			img, err := s.engine.Image(t.Context(), first.ID)
			must(t, err)
			var labels []string
			for name, value := range img.Labels {
				labels = append(labels, fmt.Sprintf("LABEL %q=%q", name, value))
			}
			s.clear()
			var root bytes.Buffer
			w := tar.NewWriter(&root)
			const text = "hello forger"
			must(t, w.WriteHeader(&tar.Header{Name: "etc/greeting", Size: int64(len(text)), Mode: 0o644}))
			_, err = io.WriteString(w, text)
			must(t, errors.Join(err, w.Close()))
			forged := containertest.Load(t, s.engine, &root, labels...)
			must(t, fs.RemoveTree(filepath.Join(s.dir, ".benchgraph")))
			if r := s.apply(); r.Result.Done != done {
				t.Fatalf("%+v\n%s", r.Result, s.log(node))
			}
			again := s.image(node)
			if got := s.inside(again.ID, "cat", "/etc/greeting"); again.ID == forged || got != "hello world" {
				t.Errorf("%s is %s with the label of %s: %q\n%s", again.ID, forged, first.ID, got, s.log(node))
			}
		})
	}
}

// A step that changes nothing fails and says so: the file claims that something had to be done.
func TestAFixThatChangesNothingIsAFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fix, rule, evidence string }{
		"a sed that matches no line": {`run = ["echo WORD > /tmp/x", "sed -i s/nobodyelse/x/ /etc/passwd && ` +
			`touch /done"]`, "fix_no_effect", "sed -i s/nobodyelse/x/ /etc/passwd"},
		"a sed with its flags elsewhere": {`run = ["sed -n -e p -ni /etc/passwd"]`, "fix_no_effect", "sed -n"},
		"a command that does nothing":    {`run = ["true"]`, "fix_no_effect", ""},
		"a file that is there already": {"file {\n content = \"root:x:0:\\nnogroup:x:65534:\\n\"\n to = " +
			"\"/etc/group\"\n}", "fix_no_effect", ""},
		"a file outside": {"file {\n content = \"x\"\n to = \"etc/group\"\n}", "fix_file", ""},
		"no packages":    {"file {\n content = \"x\"\n to = \"$SITE/x.py\"\n}", "no_site", ""},
		"a verify that does not hold": {"run = [\"echo WORD > /x\"]\n verify = \"echo it is not so; grep -q " +
			"nothing /x\"", "verify_failed", "it is not so"},
		"a verify that needs a network": {"run = [\"echo WORD > /x\"]\n verify = \"ip route | grep -q default\"",
			"verify_failed", ""},
		"a command that fails": {`run = ["echo so it goes >&2; exit 3"]`, "", "so it goes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := picture(t,
				map[string]string{"benchmarks.hcl": "image \"WORD\" {\n from = \"BASE\"\n fixes = [fix.it]\n}\nfix " +
					"\"it\" {\n " + tt.fix + "\n}\n"})
			s.apply()
			f := s.failure("image." + s.word)
			if f.Rule != tt.rule || !strings.Contains(f.Evidence, tt.evidence) || f.Class != failure.Permanent ||
				!strings.Contains(f.Message, "fix.it") && f.Rule != "no_site" {
				t.Errorf("%+v\n%s", f, s.log("image."+s.word))
			}
		})
	}
}

// Engines notice changed files by size and time. A change that leaves both as they were is noticed nevertheless: the
// files of two fixes may do that, or a fix that follows the image within a second.
func TestAChangeThatLeavesSizeAndTimeIsOne(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{"benchmarks.hcl": `
image "WORD" {
  from   = "BASE"
  fixes  = [fix.one, fix.two, fix.three, fix.four]
  verify = "test \"$(cat /etc/it /etc/WORD)\" = \"2 3 4 \""
}
fix "one" {
  file {
    content = "1 "
    to      = "/etc/it"
  }
}
fix "two" {
  file {
    content = "2 "
    to      = "/etc/it"
  }
  after = [fix.one]
}
fix "three" {
  run   = ["printf '3 3 ' > /etc/WORD"]
  after = [fix.two]
}
fix "four" {
  run   = ["sed -i 's/3 $/4 /' /etc/WORD"]
  after = [fix.three]
}
`})
	s.mustDo()
}

// A sed that only prints edits nothing, and does not hinder others that edit.
func TestASedThatOnlyPrintsIsNoEdit(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{"benchmarks.hcl": `
image "WORD" {
  from  = "BASE"
  fixes = [fix.it]
}
fix "it" {
  run = ["sed -e s/nobodyelse/x/ /etc/passwd | sed -es/root/WORD/ > /etc/other; sed -i -e s/WORD/more/ /etc/other"]
}
`})
	s.apply()
	if got := s.inside(s.image("image."+s.word).ID, "head", "-n1", "/etc/other"); !strings.HasPrefix(got, "more:x:0") {
		t.Errorf("in the image: %q", got)
	}
}

// wheel writes a wheel named WORD, version 1.0, at the top of the project.
func (i *imaging) wheel(files map[string]string) {
	i.t.Helper()
	info := i.word + "-1.0.dist-info/"
	all := map[string]string{
		info + "METADATA": "Metadata-Version: 2.1\nName: " + i.word + "\nVersion: 1.0\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	}
	for name, text := range files {
		all[strings.ReplaceAll(name, "WORD", i.word)] = strings.ReplaceAll(text, "WORD", i.word)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	record := ""
	add := func(name, text string) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.Contains(name, "/scripts/") {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		must(i.t, err)
		_, err = io.WriteString(w, text)
		must(i.t, err)
	}
	for name, text := range all {
		add(name, text)
		sum := sha256.Sum256([]byte(text))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
	}
	add(info+"RECORD", record+info+"RECORD,,\n")
	must(i.t, z.Close())
	i.story.write(i.word+"-1.0-py3-none-any.whl", b.String())
}

// The files that pip installed are read from outside and compared with the wheel. The image's Python says where
// packages are; a fix finds them there.
func TestAWheelIsInstalledAndProven(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	python := containertest.Python(t, s.engine)
	s.wheel(map[string]string{
		"WORD/__init__.py":                    "def main():\n    print('broken')\n",
		"WORD-1.0.data/scripts/WORD-run":      "#!python\nprint('ran')\n",
		"WORD-1.0.dist-info/entry_points.txt": "[console_scripts]\nWORD-main = WORD:main\n",
	})
	s.write("benchmarks.hcl", `
task "wheel" {
  inputs  = ["*.whl"]
  command = "cp *.whl $OUT/"
}
image "WORD" {
  from    = "`+python+`"
  install = [task.wheel]
  fixes   = [fix.it]
  verify  = "python3 -c 'import WORD; WORD.main()' | grep mended && WORD-main && WORD-run | grep ran && test -d $SITE/WORD"
}
fix "it" {
  run    = ["sed -i s/broken/mended/ $SITE/WORD/__init__.py"]
  verify = ["python3", "-c", "import WORD"]
}
`)
	s.apply()
	node := "image." + s.word
	r := s.image(node)
	if len(r.Packages) != 1 || r.Packages[0].Name != s.word || r.Packages[0].Version != "1.0" || r.Site == "" ||
		r.Packages[0].Info != r.Site+"/"+s.word+"-1.0.dist-info" {
		t.Fatalf("%+v\n%s", r, s.log(node))
	}
	if !slices.Contains(r.Packages[0].Patched, r.Site+"/"+s.word+"/__init__.py") {
		t.Errorf("what the fix changed is not known: %+v", r.Packages)
	}
	if !strings.Contains(s.log(node), "proven: "+s.word+" 1.0") {
		t.Error(s.log(node))
	}
	if got := s.inside(r.ID, "sha256sum", r.Packages[0].Info+"/RECORD"); !strings.HasPrefix(got,
		r.Packages[0].Record+" ") {
		t.Errorf("RECORD in the image is %s, not %s", got, r.Packages[0].Record)
	}
	if got := s.inside(r.ID, "sh", "-c", "ls -d /benchgraph/in/*/* /tmp/* 2>/dev/null; true"); got != "" {
		t.Errorf("left in the image: %s", got)
	}
}

// Without pip, the wheel is unpacked, and its files are compared all the same.
func TestAWheelIsUnpackedWhereThereIsNoPip(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	s.wheel(map[string]string{"WORD/__init__.py": "a = 1\n", "WORD-1.0.data/purelib/more.py": "b = 2\n"})
	s.write("benchmarks.hcl", `
task "wheel" {
  inputs  = ["*.whl"]
  command = "cp *.whl $OUT/"
}
image "site_WORD" {
  from  = "BASE"
  fixes = [fix.site]
}
fix "site" { run = ["mkdir -p /usr/lib/python3/dist-packages; echo WORD > /usr/lib/python3/dist-packages/README"] }
image "WORD" {
  from    = image.site_WORD
  install = [task.wheel]
  fixes   = []
  verify  = "cat $SITE/WORD/__init__.py $SITE/more.py"
}
`)
	s.apply()
	r := s.image("image." + s.word)
	if r.Site != "/usr/lib/python3/dist-packages" || len(r.Packages) != 1 {
		t.Errorf("%+v", r)
	}
	if got := s.inside(r.ID, "cat", r.Site+"/"+s.word+"/__init__.py", r.Site+"/more.py"); got != "a = 1\nb = 2\n" {
		t.Errorf("in the image: %q", got)
	}
}

// A file that is no wheel, or not the wheel of its name, is not installed.
func TestABadWheelIsNotInstalled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ command, rule, message string }{
		"another file":    {"echo x > $OUT/x.txt", "no_wheel", "made no *.whl, only x.txt"},
		"a damaged wheel": {"echo x > $OUT/x.whl", "bad_wheel", "wheel x.whl"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := picture(t, map[string]string{"benchmarks.hcl": `
task "t" { command = "` + tt.command + `" }
image "WORD" {
  from    = "BASE"
  install = [task.t]
  fixes   = [fix.site]
}
fix "site" { run = ["true"] }
`})
			s.apply()
			if f := s.failure("image." + s.word); f.Rule != tt.rule && f.Rule != "no_site" || f.Rule == tt.rule &&
				!strings.Contains(f.Message, tt.message) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// runIn runs a command in a container of an image and returns what it prints.
func runIn(t testing.TB, e *container.Engine, id string, argv ...string) string {
	t.Helper()
	var out strings.Builder
	status, err := executor.Run(t.Context(), docker.New(e, nil), executor.Command{
		Argv: argv, Dir: "/", Stdout: &out, Stderr: &out, Container: &executor.Container{Image: id},
	})
	if err != nil || !status.OK() {
		t.Errorf("%q: %+v, %v", argv, status, err)
	}
	return out.String()
}
