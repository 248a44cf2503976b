package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache/shared/bucket/buckettest"
)

// If the store has trust, a failure that no key signed is not believed, nor one that was signed for another block:
// their blocks are measured. A failure with the right signature is taken.
func TestForgedOutcomes(t *testing.T) {
	t.Parallel()
	block := func(name, command string) string {
		return "benchmark \"" + name + "\" {\n  for_each = candidates\n  executor = executor.slurm.gpu\n" +
			"  command = <<-EOT\n    " + command +
			"\n    sample 100 0.01\n  EOT\n  RATE\n  design { samples = 1 }\n}\n"
	}
	c := newClustered(t, strings.Replace(clusterFile, `{ url = "file://SHARED" }`,
		"{\n    url = \"file://SHARED\"\n    trust = [\"TRUST\"]\n  }", 1)+
		"variant \"base\" { baseline = true }\n"+
		block("fails", "while [ -e BAD ]; do sleep 0.05; done; echo no such kernel; exit 3")+
		block("forged", "HOLD")+block("replayed", "true; HOLD"))
	beside := filepath.Dir(c.hold)
	key, bad := filepath.Join(beside, "key"), filepath.Join(beside, "bad")
	check(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run(),
		os.WriteFile(c.hold, nil, 0o644), os.WriteFile(bad, nil, 0o644))
	public, err := os.ReadFile(key + ".pub")
	check(t, err)
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.NewReplacer("TRUST", strings.TrimSpace(string(public)), "BAD", bad).
		Replace(string(text)))
	c.world.env = append(c.world.env, "BENCHGRAPH_SIGNING_KEY="+key)

	c.must(0, "apply", "-detach").says(t, "3 jobs go on")
	outcomes := map[string]string{} // files, by the names of benchmarks
	for line := range strings.Lines(c.Command("squeue", "-h", "-o", "%k %j")) {
		key, name, _ := strings.Cut(strings.TrimPrefix(line, "benchgraph "), " benchgraph_trial.")
		key, owner, _ := strings.Cut(key, ":")
		name, _, _ = strings.Cut(name, "[")
		outcomes[name] = filepath.Join(beside, "store", "jobs", owner, key+".json")
	}
	check(t, os.Remove(bad))
	until(t, "a job has failed", func() bool { return fileExists(outcomes["fails"]) })
	c.Command("scancel", "--state=RUNNING", "--user=root")
	until(t, "all jobs are over", func() bool { return c.Command("squeue", "-h", "-o", "%i") == "" })
	signed, err := os.ReadFile(outcomes["fails"])
	check(t, err)
	if _, signature, _ := strings.Cut(string(signed), "\n"); signature == "" {
		t.Error("the outcome is not signed")
	}
	check(t, os.WriteFile(outcomes["replayed"], signed, 0o644), os.WriteFile(outcomes["forged"], []byte(`{"seconds": 1,
		"failure": {"class": "permanent", "rule": "x", "stage": "run", "message": "words of a forger"}}`), 0o644))
	check(t, os.Remove(c.hold))
	o := c.must(3, "apply")
	o.says(t, "no such kernel", ", 1 failed;")
	if strings.Contains(o.stdout+o.stderr, "words of a forger") {
		t.Error("a forged failure was taken")
	}
	for _, name := range []string{"forged", "replayed"} {
		o.says(t, "trial."+name+`["c#1"]  the outcome of the job in the shared store is not believed: no key of trust`)
	}
	c.must(3, "apply").says(t, ", 1 failed;")
}

// Nodes have no credentials for the store. Each job gets its own, which can write the objects of the job. Other
// machines find the results by the index, which jobs cannot write.
func TestLentCredentials(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.Replace(measuredFile, "    sample $(",
		"    if env | grep AWS_; then exit 3; fi\n    sample $(", 1))
	server := buckettest.Start(t, c.Gateway())
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	place := `url = "file://` + filepath.Join(filepath.Dir(c.hold), "store") + `"`
	c.write("benchmarks.hcl", strings.Replace(string(text), place, `
    url      = "s3://team/results"
    endpoint = "`+server+`"
    job_role = "arn:minio:iam:::role/jobs"
`, 1))
	c.world.env = append(c.world.env, "AWS_ACCESS_KEY_ID="+buckettest.User, "AWS_SECRET_ACCESS_KEY="+buckettest.Secret)
	o := c.must(0, "apply")
	o.says(t, "win", "Apply: 9 done")
	if strings.Contains(o.stderr, "Warning") {
		t.Errorf("there is a warning:\n%s", o.stderr)
	}
	c.must(0, "cache", "ls", "-shared").says(t, `trial.speed["c#4"]`)
	// The job of a block that is measured again can write the new result, too.
	c.must(0, "apply", `-replace=trial.speed["c#2"]`).says(t, "win", "its own results stand")
	check(t, os.RemoveAll(c.path(".benchgraph")))
	c.must(0, "plan").says(t, "Plan: 0 to run")
}

// trusts makes the store of the project trust a new key. It returns the file of the key, with which jobs sign.
func (c *clustered) trusts() (key string) {
	c.t.Helper()
	key = filepath.Join(filepath.Dir(c.hold), "key")
	check(c.t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	public, err := os.ReadFile(key + ".pub")
	check(c.t, err)
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(c.t, err)
	place := `url = "file://` + filepath.Join(filepath.Dir(c.hold), "store") + `"`
	c.write("benchmarks.hcl", strings.Replace(string(text), "{ "+place+" }",
		"{\n    "+place+"\n    trust = [\""+strings.TrimSpace(string(public))+"\"]\n  }", 1))
	c.world.env = append(c.world.env, "BENCHGRAPH_SIGNING_KEY="+key)
	return key
}

// A block is measured again. Meanwhile, somebody who can write to the store and has no key puts the signed old result
// where the job will leave the new one. The new one counts.
func TestAnOldResultInPlaceOfANewOne(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer("samples = 4", "samples = 1", "    sample $(case",
		"    date +%s.%N >$OUT/when\n    sample $(case").Replace(measuredFile))
	c.trusts()
	c.must(0, "apply")
	const block = `trial.speed["c#1"]`
	when := func() string {
		_, file := c.result(block)
		return file("base/out/when")
	}
	old := when()
	check(t, os.WriteFile(c.hold, nil, 0o644))
	ended := make(chan outcome, 1)
	go func() { ended <- c.run("apply", "-replace="+block) }()
	c.jobIs("RUNNING")
	comment := strings.TrimSpace(c.Command("squeue", "-h", "-o", "%k"))
	parts := strings.Split(strings.TrimPrefix(comment, "benchgraph "), ":")
	key, owner, round := parts[0], parts[1], parts[2]
	store := filepath.Join(filepath.Dir(c.hold), "store")
	signed, err := os.ReadFile(filepath.Join(store, "entries", key[:2], key))
	check(t, err, os.MkdirAll(filepath.Join(store, "jobs", owner), 0o755),
		os.WriteFile(filepath.Join(store, "jobs", owner, key+"."+round+".entry"), signed, 0o644), os.Remove(c.hold))
	if o := <-ended; o.code != 0 || when() == old {
		t.Errorf("exit code %d, and the old result counts: %v\n%s%s", o.code, when() == old, o.stdout, o.stderr)
	}
}

// Commands in a sandbox of a job see neither the key that signs, nor the files of this job and of others, nor the store
// of the machine, even if the job has a store of its own.
func TestASandboxHidesTheJob(t *testing.T) {
	t.Parallel()
	c := newClustered(t, strings.NewReplacer(`sandbox = "none"`, `sandbox = "required"`, "samples = 4", "samples = 1",
		"gpus { count = 2 }", "executor = executor.slurm.gpu", "    sample $(case",
		"    { cat BESIDE/key; ls -d BESIDE/tmp/*/* BESIDE/*.store/[!t]* BESIDE/store/* BESIDE/jobs/*; } 2>/dev/null "+
			"| sed 's/^/sees /'\n    echo work done: $(case").Replace(measuredFile))
	beside := filepath.Dir(c.hold)
	other := filepath.Join(beside, "tmp", "benchgraph-jobs-0", "job-other") // of a job that runs beside
	check(t, os.MkdirAll(other, 0o755), os.WriteFile(filepath.Join(other, "snapshot"), nil, 0o644))
	text, err := os.ReadFile(c.path("benchmarks.hcl"))
	check(t, err)
	c.write("benchmarks.hcl", strings.NewReplacer("BESIDE", beside, "max_jobs = 4",
		"max_jobs = 4\n  setup = \"export TMPDIR="+beside+"/tmp\"").Replace(string(text)))
	c.trusts()
	for _, args := range [][]string{{"apply"}, {"apply", `-replace=trial.speed["c#1"]`}} {
		c.must(0, args...)
		c.must(0, "logs", `trial.speed["c#1"]`).saysNot(t, "\nsees ")
	}
}
