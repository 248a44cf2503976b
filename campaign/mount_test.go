package campaign_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/device/gpu"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
)

// weights is a project whose benchmark, task and wheel read a model outside of the project.
const weights = `
mount "models" {
  source   = "%s"
  target   = "/models"
  identity = %s
}
commit "c" {}
variant "base" { baseline = true }
variant "other" {}
wheel "w" {
  for_each = candidates
  build {
    command = "wc -c < $MOUNT_MODELS/small/weights > $OUT/size; echo ${each.key} > $OUT/key"
    mounts  = [mount.models]
  }
}
benchmark "read" {
  for_each = candidates
  mounts   = [mount.models]
  command  = "echo speed: $(wc -c < $MOUNT_MODELS/small/weights)"
  server {
    command = "test -f $MOUNT_MODELS/small/weights && echo up && sleep 60"
    ready { log = "up" }
  }
  design { samples = 1 }
  metrics {
    metric "speed" {
      match  = "speed: ([0-9]+)"
      better = "higher"
    }
  }
}
task "t" {
  mounts  = [mount.models]
  command = "cp $MOUNT_MODELS/small/weights $OUT/copy"
}
`

// failures returns the failures of the last apply, by rule.
func (s *story) failures() map[string]*failure.Failure {
	all := map[string]*failure.Failure{}
	for _, e := range s.events {
		if e.Type == engine.NodeFailed && e.Failure != nil {
			all[e.Failure.Rule] = e.Failure
		}
	}
	return all
}

func TestMountsAreWhereTheyAre(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	outside := t.TempDir()
	model := filepath.Join(outside, "models", "small")
	must(t, os.MkdirAll(model, 0o755))
	put := func(text string) { must(t, os.WriteFile(filepath.Join(model, "weights"), []byte(text), 0o644)) }
	put("12345")
	declare := func(source, identity string) { s.write("benchmarks.hcl", fmt.Sprintf(weights, source, identity)) }

	// If the directory is missing, nodes that need it are blocked, with a remedy.
	declare(filepath.Join(outside, "none"), `"r1"`)
	applied := s.apply()
	if r := applied.Result; r.Blocked == 0 || r.Failed > 0 || len(s.ran()) > 0 {
		t.Fatalf("without a directory: %+v, ran %v", r, s.ran())
	}

	// The key has the identity of the mount, and not the path of its directory.
	declare(filepath.Join(outside, "models"), `"r1"`)
	if r := s.apply().Result; r.Failed > 0 || r.Blocked > 0 {
		t.Fatalf("%+v", s.failures())
	}
	must(t, os.Rename(filepath.Join(outside, "models"), filepath.Join(s.dir, "elsewhere")))
	model = filepath.Join(s.dir, "elsewhere", "small")
	// the story's HOME is its directory
	for _, source := range []string{"./elsewhere", "~/elsewhere", filepath.Join(s.dir, "elsewhere")} {
		declare(source, `"r1"`)
		if s.apply(); len(s.ran()) > 0 {
			t.Errorf("%s: the same model somewhere else ran %v", source, s.ran())
		}
	}
	declare("./elsewhere", `"r2"`)
	s.apply()
	if ran := strings.Join(s.ran(), " "); !strings.Contains(ran, "task.t") || !strings.Contains(ran, "trial.read") ||
		!strings.Contains(ran, "wheel.w") {
		t.Errorf("another revision ran %s", ran)
	}

	// Digests are compared with the files before commands see them.
	s.write("models.sha256", fmt.Sprintf("%x  small/weights\n", sha256.Sum256([]byte("12345"))))
	declare("./elsewhere", `file("models.sha256")`)
	if r := s.apply().Result; r.Failed > 0 {
		t.Fatalf("the right digest: %+v", s.failures())
	}
	put("54321")
	s.write("benchmarks.hcl", fmt.Sprintf(weights, "./elsewhere", `file("models.sha256")`)+`task "new" {
  mounts  = [mount.models]
  command = "true"
}`)
	s.apply()
	if f := s.failures()["mount_differs"]; f == nil || !strings.Contains(f.Message, "weights has the SHA-256") {
		t.Errorf("another content: %+v", s.failures())
	}
	must(t, os.Remove(filepath.Join(model, "weights")))
	s.write("benchmarks.hcl", fmt.Sprintf(weights, "./elsewhere",
		`file("models.sha256")`)+"task \"newer\" {\n  mounts = [mount.models]\n  command = \"true # newer\"\n}")
	if r := s.apply().Result; r.Blocked == 0 || len(s.ran()) > 0 {
		t.Errorf("a file that is gone: %+v, ran %v", r, s.ran())
	}

	// No command may see the state of benchgraph.
	for _, source := range []string{".", "./.benchgraph", "./.benchgraph/store", "/"} {
		declare(source, `"r3"`)
		if r := s.apply().Result; r.Blocked == 0 || len(s.ran()) > 0 {
			t.Errorf("%s: %+v, ran %v", source, r, s.ran())
		}
	}
	must(t, os.Symlink(s.dir, filepath.Join(outside, "link")))
	declare(filepath.Join(outside, "link"), `"r3"`)
	if r := s.apply().Result; r.Blocked == 0 || len(s.ran()) > 0 {
		t.Errorf("by a link: %+v, ran %v", r, s.ran())
	}

	// A directory that comes back is found, although the plan before is remembered.
	must(t, os.WriteFile(filepath.Join(model, "weights"), []byte("12345"), 0o644))
	declare("./elsewhere", `file("models.sha256")`)
	if r := s.apply().Result; r.Blocked > 0 || r.Failed > 0 {
		t.Errorf("a file that is back: %+v", r)
	}

	// Only containers have volumes.
	declare("a-volume", `"r4"`)
	if r := s.apply().Result; r.Blocked == 0 || len(s.ran()) > 0 {
		t.Errorf("a volume on the host: %+v, ran %v", r, s.ran())
	}
}

// The files of a mount are read once, before nodes that need the mount get devices: a model of 140 GB takes minutes.
func TestMountsAreCheckedBeforeDevicesAreGranted(t *testing.T) {
	t.Parallel()
	s := tell(t, nil)
	s.gpus = []gpu.Device{{UUID: "GPU-0", Name: "Big", Memory: 1 << 30}}
	s.write("models/small/weights", "12345")
	s.write("models.sha256", fmt.Sprintf("%x  small/weights\n", sha256.Sum256([]byte("12345"))))
	s.write("benchmarks.hcl", unguarded+strings.Replace(fmt.Sprintf(weights, "./models", `file("models.sha256")`),
		"  server {", "  gpus { count = 1 }\n  server {", 1))
	applied := s.apply()
	if r := applied.Result; r.Failed+r.Blocked > 0 {
		t.Fatalf("%+v, %+v", r, s.failures())
	}
	var told []string
	for _, e := range s.events {
		switch {
		case e.Type == engine.LeaseGranted:
			told = append(told, "granted")
		case e.Reason == engine.Waiting+"the check of mount.models":
			told = append(told, "checked")
		}
	}
	if want := []string{"checked", "granted"}; !slices.Equal(told, want) {
		t.Errorf("%q, not %q", told, want)
	}
}

func TestMountsInContainers(t *testing.T) {
	t.Parallel()
	s := contained(t, `
mount "models" {
  source   = "./models"
  target   = "/srv/models"
  identity = "r1"
}
mount "cache" {
  source    = "./cache"
  target    = "/srv/cache"
  read_only = false
  identity  = "none"
}
task "look" {
  image   = image.WORD
  mounts  = [mount.models, mount.cache]
  command = <<-END
    cp /srv/models/weights $OUT/copy
    echo $MOUNT_MODELS $MOUNT_CACHE > $OUT/where
    if touch $MOUNT_MODELS/x; then echo the model is writable; exit 1; fi
    echo kept > $MOUNT_CACHE/new
  END
}
`)
	s.write("models/weights", "12345")
	must(t, os.MkdirAll(filepath.Join(s.dir, "cache"), 0o777))
	s.mustDo()
	if text, err := os.ReadFile(filepath.Join(s.dir, "cache", "new")); err != nil || string(text) != "kept\n" {
		t.Errorf("what was written to the mount: %q, %v", text, err)
	}
	for name, want := range map[string]string{"copy": "12345", "where": "/srv/models /srv/cache\n"} {
		if got := s.result("task.look", name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
