package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A fix that is learnt from jobs of the first wave is in the snapshot of the second one, with the file that the fix
// lays. Scripts and data that the file reads are in both.
func TestALearntFixReachesTheNodes(t *testing.T) {
	t.Parallel()
	c := newClustered(t, clusterFile+`
variant "base" { baseline = true }
variant "fast" {}
fix "config" {
  detect = "config is broken"
  effect = "neutral"
  caveat = "the config is ours"
  file {
    from = "fix/config"
    to   = "config"
  }
}
benchmark "speed" {
  for_each = candidates
  command  = <<-EOT
    grep -qs good config || { echo config is broken; exit 3; }
    ${file("rate.sh")}
  EOT
  env = { HERE = abspath("nowhere"), FOUND = join(" ", fileset("data", "*.txt")) }
  RATE
  design { samples = 2 }
}
compare "speed" { of = [benchmark.speed] }
`)
	c.write("fix/config", "good\n")
	c.write("rate.sh", `test "$FOUND" = "a.txt b.txt" && sample 100 0.01`+"\n")
	c.write("data/a.txt", "a")
	c.write("data/b.txt", "b")
	c.must(0, "apply").says(t, "fix.config learnt")
	c.must(0, "plan").says(t, "Plan: 0 to run")
}

// With a store on a server, nodes share nothing with the machine of the project but the directory for Slurm's output.
// The server never gets a secret.
func TestAStoreOnAServer(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("gpus { count = 2 }", "gpus { count = 2 }\n  secrets = [\"TOKEN\"]",
		"sample $(", `test "$(printf %s "$TOKEN" | rev)" = eueuq-eht-morf-neddih; sample $(`).Replace(measuredFile))
	backend := s3mem.New()
	check(t, backend.CreateBucket("team"))
	l, err := net.Listen("tcp", c.Gateway()+":0")
	check(t, err)
	server := httptest.NewUnstartedServer(gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server())
	check(t, server.Listener.Close())
	server.Listener = l
	server.Start()
	defer server.Close()
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.NewReplacer(
		`url = "file://`+filepath.Join(filepath.Dir(c.hold), "store")+`"`,
		"\nurl = \"s3://team/results\"\nendpoint = \""+server.URL+"\"\n", "max_jobs = 4",
		"max_jobs = 4\n  setup = \"export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret-of-the-team\"").
		Replace(string(text)))
	c.world.env = append(c.world.env, "TOKEN=hidden-from-the-queue", "AWS_ACCESS_KEY_ID=key",
		"AWS_SECRET_ACCESS_KEY=secret-of-the-team")
	c.must(0, "apply").says(t, "win", "Apply: 9 done")
	list, err := backend.ListBucket("team", nil, gofakes3.ListBucketPage{})
	check(t, err)
	kinds := map[string]int{}
	for _, o := range list.Contents {
		object, err := backend.GetObject("team", o.Key, nil)
		check(t, err)
		body, err := io.ReadAll(object.Contents)
		check(t, err)
		kind, _, _ := strings.Cut(strings.TrimPrefix(o.Key, "results/"), "/")
		if kinds[kind]++; strings.Contains(string(body), "hidden-from-the-queue") {
			t.Errorf("%s has the secret", o.Key)
		}
	}
	if kinds["entries"] < 10 || kinds["jobs"] > 0 { // 9 results and a snapshot
		t.Errorf("the bucket has %v", kinds)
	}
}

// A file that a command names by abspath must be on the node. If it is missing, the node is to blame, and no command of
// the candidate runs.
func TestAFileThatANodeLacks(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("    sample $(case",
		"    touch RAN; . ${abspath(\"FILE\")}\n    sample $(case", "samples = 4", "samples = 1").Replace(measuredFile))
	there, ran := filepath.Join(filepath.Dir(c.hold), "rate.sh"), filepath.Join(filepath.Dir(c.hold), "ran")
	check(t, os.WriteFile(there, []byte("true\n"), 0o644))
	c.write("rate.sh", "true\n")
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	named := func(file string) {
		c.write("benchmarks.hcl", strings.NewReplacer("FILE", file, "RAN", ran).Replace(string(text)))
	}
	named("rate.sh")
	c.must(3, "apply").says(t, "infra", c.path("rate.sh")+" by abspath, and it cannot be read here: no such file",
		"bring it there under this path; or hand the file over as data")
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command of the candidate ran")
	}
	var status struct {
		Commits []struct {
			Candidates []struct{ Outcome string }
		}
	}
	lost := func(which int) {
		t.Helper()
		c.json(&status, "status", "-json")
		for i, candidate := range status.Commits[0].Candidates {
			if i >= which && candidate.Outcome != "infra" {
				t.Errorf("the outcome of candidate %d is %q", i, candidate.Outcome)
			}
		}
	}
	lost(0)
	// A command may not need a path that the file names without abspath, so the job runs. If the command fails and its
	// output names the path, the node has failed, even if the baseline passes.
	c.write("benchmarks.hcl", strings.NewReplacer("touch RAN; . ${abspath(\"FILE\")}", "cat in",
		"*fast) echo 200", "*fast) cat "+c.path("rate.sh")+" || kill $$; echo 200").Replace(string(text)))
	c.must(3, "apply").says(t, "infra", c.path("rate.sh")+" is on the machine of the project, and not here")
	lost(1)
	named(there)
	c.must(0, "apply").says(t, "Apply: ")
	if _, err := os.Stat(ran); err != nil {
		t.Error(err)
	}
}

// A mount is on the nodes under its path on this machine. If it is missing or another one there, the block fails with
// that reason.
func TestAModelThatANodeLacks(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("gpus { count = 2 }", "gpus { count = 2 }\n  mounts = [mount.model]",
		"samples = 4", "samples = 1").Replace(measuredFile)+`
mount "model" {
  source   = "MODEL"
  target   = "/model"
  identity = file("model.sha256")
}
`)
	there := filepath.Join(filepath.Dir(c.hold), "model")
	check(t, os.Mkdir(there, 0o755), os.WriteFile(filepath.Join(there, "weights"), []byte("weights\n"), 0o644))
	c.write("model/weights", "weights\n")
	c.write("model.sha256", fmt.Sprintf("%x  weights\n", sha256.Sum256([]byte("weights\n"))))
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	mounted := func(at string) { c.write("benchmarks.hcl", strings.ReplaceAll(string(text), "MODEL", at)) }
	mounted("./model")
	c.must(3, "apply").says(t, "needs mount.model, and there is no directory "+c.path("model"))
	mounted(there)
	c.must(0, "apply").says(t, "Apply: ")
	for _, name := range []string{"store", "n1.store", "n2.store"} {
		dir := filepath.Join(filepath.Dir(c.hold), name)
		_ = exec.Command("chmod", "-R", "u+w", dir).Run()
		check(t, os.RemoveAll(dir))
	}
	c.forget(t)
	check(t, os.WriteFile(filepath.Join(there, "weights"), []byte("others\n"), 0o644))
	c.must(3, "apply").says(t, "weights has the SHA-256 ")
}
