package campaign_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// inRegistry is a story with an image in a registry: busybox, a script that plays Python, and a file that no other
// image has.
func inRegistry(t *testing.T, config v1.Config) (s *imaging, ref, digest string) {
	t.Helper()
	s = picture(t, nil)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range map[string]string{"bin/python3": strings.Replace(installer, "AFTER", ":", 1),
		"word": s.word} {
		must(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}))
		_, _ = w.Write([]byte(text))
	}
	must(t, w.WriteHeader(&tar.Header{Name: "site", Typeflag: tar.TypeDir, Mode: 0o755}))
	must(t, w.Close())
	ref = containertest.NewRegistry(t).Host + "/" + s.word + ":v1"
	digest = publish(t, ref, config, layerOf(t, containertest.BusyboxFiles(t)), layerOf(t, out.Bytes()))
	t.Cleanup(func() {
		s.clear() // what was made from it goes first
		err := s.engine.RemoveImage(context.Background(), strings.TrimSuffix(ref, ":v1")+"@"+digest)
		if err != nil && !container.IsNotFound(err) { // Podman removes it with the last image that was made from it
			t.Error(err)
		}
	})
	return s, ref, digest
}

const onRegistry = `
task "wheel" {
  inputs  = ["*.whl"]
  command = "cp *.whl $OUT/"
}
image "WORD" {
  from    = "REF"
  install = [task.wheel]
  fixes   = [fix.it]
  verify  = "grep -q mended $SITE/WORD/__init__.py"
}
fix "it" { run = ["sed -i s/broken/mended/ $SITE/WORD/__init__.py"] }
`

// An image of a registry gets wheels and fixes like any other, is named by its digest in the registry, and keeps its
// configuration. While a command runs in the image, its health check does not run.
func TestTheConfigurationOfABaseImageSurvivesSteps(t *testing.T) {
	t.Parallel()
	says := v1.Config{
		Env: []string{"PATH=/bin", "MODEL=large"}, User: "65534", WorkingDir: "/srv",
		Entrypoint: []string{"/bin/entry", "--"}, Cmd: []string{"serve"},
		ExposedPorts: map[string]struct{}{"8000/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
		StopSignal: "SIGQUIT", Shell: []string{"/bin/sh", "-ec"},
		Labels:  map[string]string{"org.opencontainers.image.title": "a base", "org.opencontainers.image.version": "7"},
		OnBuild: []string{"RUN false"},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD-SHELL", "touch /tmp/checked"}, Interval: time.Second,
			Retries: 3},
	}
	s, ref, digest := inRegistry(t, says)
	s.wheel(map[string]string{"WORD/__init__.py": "broken\n"})
	s.write("benchmarks.hcl", strings.ReplaceAll(onRegistry, "REF", ref)+`
task "alone" {
  image   = image.WORD
  command = "sleep 3; test ! -e /tmp/checked; echo so > $OUT/it"
}
`)
	s.mustDo()
	node := "image." + s.word
	made := s.image(node)
	if lock := s.lock.Images[ref]; lock.Digest != digest || lock.Size == 0 {
		t.Errorf("pinned as %+v, and it is %s", lock, digest)
	}
	if len(made.Packages) != 1 || made.Site != "/site" || len(made.Steps) != 3 {
		t.Errorf("%+v\n%s", made, s.log(node))
	}
	var got v1.Config
	containertest.Config(t, s.engine, made.ID, &got)
	for name, want := range map[string]string{"base.name": ref, "base.digest": digest} {
		if label := got.Labels["org.opencontainers.image."+name]; label != want {
			t.Errorf("%s is %q, want %q", name, label, want)
		}
	}
	for name := range got.Labels {
		if _, ok := says.Labels[name]; !ok {
			delete(got.Labels, name)
		}
	}
	says.OnBuild = nil // a base's ONBUILD ran in the first build from it
	if containertest.IsPodman(t, s.engine) {
		says.Healthcheck, says.StopSignal, says.Shell = nil, "", nil
		got.Env = slices.DeleteFunc(got.Env, func(v string) bool {
			return v == "container=podman" || strings.HasPrefix(v, "HOSTNAME=")
		})
		slices.Sort(got.Env) // a commit has them in any order
		slices.Sort(says.Env)
	}
	if d := cmp.Diff(says, got); d != "" {
		t.Errorf("what the image says of itself (-base +made):\n%s", d)
	}

	// Everything is found again without the local state, even if the registry is gone.
	must(t, fs.RemoveTree(filepath.Join(s.dir, ".benchgraph")))
	s.offline = true
	s.mustDo()
	if again := s.image(node); again.ID != made.ID || len(s.mine()) != 2 {
		t.Errorf("made again as %+v", again)
	}
}

// Files that a step puts below a VOLUME are lost with the step's container. The failure says so, and the step does not
// count as done.
func TestAVolumeSwallowsNothingUnseen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ volume, fix, rule, says string }{
		"a file of a fix": {"/data", "file {\n content = \"x\"\n to = \"/data/x\"\n}", "in_volume",
			"/data/x is below /data, a VOLUME"},
		"what a fix writes": {"/data/", `run = ["echo x > /data/x"]`, "fix_no_effect",
			"below /data/ is thrown away"},
		"the packages of the image": {"/site", `run = ["touch /x"]`, "in_volume", "is below /site, a VOLUME"},
		"none of it":                {"/other", "file {\n content = \"x\"\n to = \"/data/x\"\n}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ref, _ := inRegistry(t, v1.Config{Env: []string{"PATH=/bin"},
				Volumes: map[string]struct{}{tt.volume: {}}})
			s.wheel(map[string]string{"WORD/__init__.py": "a = 1\n"})
			text := strings.ReplaceAll(onRegistry, "REF", ref)
			text = text[:strings.Index(text, "  verify")] + "}\nfix \"it\" {\n" + tt.fix + "\n}\n"
			if tt.volume != "/site" {
				text = strings.Replace(text, "  install = [task.wheel]\n", "", 1)
			}
			s.write("benchmarks.hcl", text)
			s.apply()
			if tt.rule == "" {
				s.image("image." + s.word)
				return
			}
			f, err := json.Marshal(s.failure("image." + s.word))
			must(t, err)
			if !strings.Contains(string(f), tt.rule) || !strings.Contains(string(f), tt.says) {
				t.Errorf("%s", f)
			}
			if left, _ := os.ReadDir(filepath.Join(s.dir, ".benchgraph", "work")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
