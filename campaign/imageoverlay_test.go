package campaign_test

import (
	"strings"
	"testing"

	api "github.com/docker/docker/api/types/container"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
)

// overlaid begins a story with a package that an image has as an editable installation of the repository's first
// commit. Its second commit changes a file, adds one and removes one.
func overlaid(t *testing.T) *imaging {
	s := picture(t, nil)
	s.commit(map[string]string{"src/pkg/__init__.py": "", "src/pkg/a.py": "print('one')\n", "src/pkg/gone.py": "",
		"src/pkg/unpackaged.py": "", "core.c": "int x;\n"})
	s.git("rm", "-q", "src/pkg/gone.py")
	s.commit(map[string]string{"src/pkg/a.py": "import pkg.new\nprint('two')\n", "src/pkg/new.py": ""})
	s.write("benchmarks.hcl", `
repo "r" { path = "repo" }
commit "c" { rev = "main" }
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" { rev = each.commit.rev }
image "WORD_editable" {
  from  = "`+containertest.Python(t, s.engine)+`"
  fixes = [fix.editable]
}
fix "editable" {
  run = [<<-SH
    mkdir -p /opt/tree/src/pkg
    cd /opt/tree/src/pkg
    echo "print('one')" > a.py
    touch __init__.py gone.py
    echo "version = 'WORD'" > _version.py
    echo /opt/tree/src > $SITE/pkg-editable.pth
    python3 -c 'import pkg.a, pkg.gone'
  SH
  ]
}
image "WORD" {
  for_each = candidates
  from     = image.WORD_editable
  fixes    = []
  overlay {
    source = each.source
    over   = source.r["c/base"]
    paths  = ["src/**/*.py"]
  }
}
`)
	return s
}

// The files of a candidate's tree replace those of the installed package, wherever the image's Python finds the
// package. Generated files stay, and files that were not packaged stay out.
func TestAnOverlayReplacesTheFilesOfAnInstalledPackage(t *testing.T) {
	t.Parallel()
	s := overlaid(t)
	s.apply()
	base, human := s.image("image."+s.word+`["c/base"]`), s.image("image."+s.word+`["c/human"]`)
	const list = "cd /opt/tree/src/pkg && ls *.py && python3 -c 'import pkg.a, pkg._version'"
	if got, want := s.inside(base.ID, "sh", "-c", list), "__init__.py\n_version.py\na.py\ngone.py\none\n"; got != want {
		t.Errorf("in the image of the parent:\n%s\nwant\n%s", got, want)
	}
	if got, want := s.inside(human.ID, "sh", "-c", list), "__init__.py\n_version.py\na.py\nnew.py\ntwo\n"; got != want {
		t.Errorf("in the image of the commit:\n%s\nwant\n%s", got, want)
	}
	if log := s.log("image." + s.word + `["c/human"]`); !strings.Contains(log,
		"proven: 3 files as in the source tree, 2 of them laid over, 1 removed") {
		t.Error(log)
	}
	if len(human.Packages) != 1 || human.Packages[0].Name != "pkg" || human.Packages[0].Version != "overlay" {
		t.Errorf("%+v", human.Packages)
	}
}

// A benchmark refuses to start in an image that lacks files of its overlay, whether the first file of the package or
// any other differs.
func TestABenchmarkRefusesAnotherFileThanTheOverlay(t *testing.T) {
	t.Parallel()
	s := overlaid(t)
	s.apply()
	name := s.word + "-forged"
	id := s.image("image." + s.word + `["c/human"]`).ID
	_, err := s.engine.Create(t.Context(), name, &api.Config{Image: id,
		Entrypoint: []string{"sh", "-c", "echo '# forged' >> /opt/tree/src/pkg/new.py"}}, &api.HostConfig{})
	must(t, err)
	wait, err := s.engine.Await(t.Context(), name)
	must(t, err)
	must(t, s.engine.Start(t.Context(), name))
	_, err = wait()
	must(t, err)
	forged, err := s.engine.Commit(t.Context(), name,
		api.CommitOptions{Config: &api.Config{Labels: map[string]string{container.LabelNode: "image." + s.word}}})
	must(t, err)
	must(t, s.engine.Remove(t.Context(), name))
	made, err := s.engine.Image(t.Context(), forged) // Podman's answer has the ID in another form
	must(t, err)
	s.write("benchmarks.hcl", `
image "WORD" { from = "`+made.ID+`" }
benchmark "speed" {
  image   = image.WORD
  command = "python3 -m pkg.a"
  metrics { primary = "duration" }
}
`)
	s.apply()
	const want = "/opt/tree/src/pkg/new.py is not the file that was installed"
	if log := s.log(`trial.speed["#1"]`); !strings.Contains(log, "the running artefact is not the image's") ||
		!strings.Contains(log, want) {
		t.Errorf("%s\nwant %q", log, want)
	}
}

// An overlay is refused over another revision than that of the file, and if it would hide a change that has to be
// built.
func TestAnOverlayIsRefusedOverAnotherRevision(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		commit      map[string]string
		over        string
		rule, tells string
	}{
		"another revision": {nil, `source.r["c/human"]`, "overlay_mismatch",
			"/opt/tree/src/pkg/a.py in the image is not that of source.r[\"c/human\"]"},
		"compiled files": {map[string]string{"core.c": "int y;\n"}, `source.r["c/base"]`, "overlay_outside",
			"core.c differs between"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overlaid(t)
			if tt.commit != nil {
				s.git("checkout", "-q", "HEAD~1")
				s.commit(tt.commit)
				s.git("branch", "-qf", "main")
			}
			s.write("benchmarks.hcl", strings.Replace(s.read("benchmarks.hcl"), `source.r["c/base"]`, tt.over, 1))
			s.apply()
			if f := s.failure("image." + s.word + `["c/human"]`); f.Rule != tt.rule ||
				!strings.Contains(f.Message, tt.tells) {
				t.Errorf("%+v", f)
			}
		})
	}
}
