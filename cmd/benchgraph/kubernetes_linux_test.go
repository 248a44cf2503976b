package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/executor/kubernetes/kubetest"
)

// podded is a project whose benchmarks run as Jobs of a Kubernetes cluster. The API server is real; the kubelet, which
// has two devices, is played.
type podded struct {
	*world
	cluster   *kubetest.Cluster
	namespace string
	hold      string // while this file exists, measured commands do not end
	shared    string
}

const poddedFile = `
benchgraph {
  sandbox = "none"
  store { url = "file://SHARED/store" }
}
variable "word" { default = "" }
variable "other" { default = "" }
machine "h200" { devices = "machines/h200.json" }
executor "kubernetes" "gpu" {
  machine  = machine.h200
  image    = "IMAGE"
  program  = "PROGRAM"
  volumes  = { "SHARED" = "shared", "/usr" = "programs", "BIN" = "bin" }
  env_from = ["node"]
  cpus     = 1
  max_jobs = 1
}
commit "c" {}
variant "base" { baseline = true }
variant "fast" {}
benchmark "speed" {
  for_each = candidates
  secrets  = ["SPEED_TOKEN"]
  command  = <<-EOT
    sample 100 0.01
    printf 'hostile \033[2J\r\000 line of %s bytes\n' "$(printf %s "$SPEED_TOKEN" | wc -c)"
    while [ -e SHARED/hold ]; do sleep 0.05; done
    p=$PPID
    while [ "$p" -gt 0 ]; do
      tr '\0' '\n' </proc/$p/environ | grep -E 'victor[y]|BENCHGRAPH_(REQUES[T]_|SCRIP[T])' && echo found
      p=$(cut -d' ' -f4 /proc/$p/stat)
    done
    grep -rl 'victor[y]' /mnt /dev/shm /tmp/benchgraph-jobs-* | sed 's/^/found /'
    echo searched
  EOT
  gpus { count = 2 }
  metrics {
    metric "rate" {
      match  = "work done: ([0-9.]+)"
      better = "higher"
    }
  }
  design { samples = 2 }
}
compare "speed" { of = [benchmark.speed] }
`

func newPodded(t *testing.T, c *kubetest.Cluster, bin string) *podded {
	t.Helper()
	p := &podded{world: newWorld(t, ""), cluster: c, namespace: c.Namespace()}
	var err error
	p.shared, err = os.MkdirTemp("/srv", "benchgraph-test-") // /tmp is hidden in a sandbox anyway
	check(t, err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", p.shared).Run(); _ = os.RemoveAll(p.shared) })
	library, err := nvmltest.Build(p.shared, false)
	check(t, err)
	played := filepath.Join(p.shared, "played")
	check(t, os.WriteFile(played, []byte(nvmltest.Scenario("node", "NVIDIA_H200", 143771, 2)), 0o644))
	program, err := exec.LookPath("benchgraph")
	check(t, err)
	nodes := []string{"BENCHGRAPH_NVML=" + library, "NVML_SCENARIO=" + played,
		"BENCHGRAPH_HOST_LOCK=" + played + ".lock", "BENCHGRAPH_CACHE_DIR=" + played + ".store",
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.shared}
	c.Play(t, p.namespace)
	c.Claim(p.namespace, "shared", p.shared)
	c.Claim(p.namespace, "programs", "/usr")
	c.Claim(p.namespace, "bin", filepath.Dir(program))
	p.secret("node", nodes)
	p.world.env = append(p.world.env, "PATH="+bin+":"+os.Getenv("PATH"), "SPEED_TOKEN=hunter2",
		"KUBECONFIG="+c.Kubeconfig(p.shared, "admin", p.namespace))
	p.hold = filepath.Join(p.shared, "hold")
	p.write("benchmarks.hcl", strings.NewReplacer("SHARED", p.shared, "PROGRAM", program, "IMAGE", c.Picture(), "BIN",
		filepath.Dir(program)).Replace(poddedFile))
	check(t, os.MkdirAll(p.path("machines"), 0o755), os.Mkdir(filepath.Join(p.shared, "store"), 0o755))
	p.write("machines/h200.json", p.describe(program, nodes))
	return p
}

// describe returns the description of the machine that a Pod sees.
func (p *podded) describe(program string, environ []string) string {
	p.t.Helper()
	if !p.cluster.Real() {
		cmd := exec.Command(program, "devices", "-json")
		cmd.Env = environ
		text, err := cmd.Output()
		check(p.t, err)
		return string(text)
	}
	mount := func(name, at string) (volume, mount map[string]any) {
		return map[string]any{"name": name, "persistentVolumeClaim": map[string]string{"claimName": name}},
			map[string]any{"name": name, "mountPath": at}
	}
	var volumes, mounts []any
	for name, at := range map[string]string{"shared": p.shared, "programs": "/usr", "bin": filepath.Dir(program)} {
		v, m := mount(name, at)
		volumes, mounts = append(volumes, v), append(mounts, m)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "describe"}, "spec": map[string]any{"restartPolicy": "Never",
			"volumes": volumes, "containers": []any{map[string]any{
				"name": "x", "image": p.cluster.Picture(), "command": []string{program, "devices", "-json"},
				"envFrom":      []any{map[string]any{"secretRef": map[string]string{"name": "node"}}},
				"volumeMounts": mounts,
				"resources":    map[string]any{"limits": map[string]string{"cpu": "1", "nvidia.com/gpu": "2"}}}}}})
	check(p.t, err)
	p.cluster.Post(p.namespace, "pods", string(text))
	pod := p.cluster.Core.Get().Namespace(p.namespace).Resource("pods").Name("describe")
	until(p.t, "a Pod has described its machine", func() bool {
		text, _ := p.objects()
		return strings.Contains(text, `"phase":"Succeeded"`)
	})
	text, err = pod.SubResource("log").DoRaw(context.Background())
	check(p.t, err, p.cluster.Core.Delete().Namespace(p.namespace).Resource("pods").Name("describe").
		Do(context.Background()).Error())
	return string(text)
}

// secret makes a Secret of variables, as NAME=value.
func (p *podded) secret(name string, variables []string) {
	p.t.Helper()
	entries := map[string]string{}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		entries[name] = value
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": entries,
		"metadata": map[string]any{"name": name}})
	check(p.t, err)
	p.cluster.Post(p.namespace, "secrets", string(text))
}

// objects returns the Jobs and Pods of the namespace, as JSON, and their number.
func (p *podded) objects() (text string, jobs int) {
	p.t.Helper()
	j, pods := &batchv1.JobList{}, &corev1.PodList{}
	ctx := context.Background()
	check(p.t, p.cluster.Batch.Get().Namespace(p.namespace).Resource("jobs").Do(ctx).Into(j),
		p.cluster.Core.Get().Namespace(p.namespace).Resource("pods").Do(ctx).Into(pods))
	all, err := json.Marshal([]any{j, pods})
	check(p.t, err)
	return string(all), len(j.Items)
}

// running waits until a Pod runs.
func (p *podded) running() {
	p.t.Helper()
	until(p.t, "a Pod runs", func() bool {
		text, _ := p.objects()
		return strings.Contains(text, `"phase":"Running"`)
	})
}

// TestKubernetes has one API server for all of its parts.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t)
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "github.com/benchgraph/benchgraph/cmd/benchgraph-kubernetes")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("campaign", func(t *testing.T) { campaignOnKubernetes(newPodded(t, c, bin)) })
	t.Run("no request", func(t *testing.T) { requestOnKubernetes(newPodded(t, c, bin)) })
	t.Run("killed", func(t *testing.T) { killedOnKubernetes(newPodded(t, c, bin)) })
	t.Run("interrupted", func(t *testing.T) { interruptedOnKubernetes(newPodded(t, c, bin)) })
	t.Run("again", func(t *testing.T) { againOnKubernetes(newPodded(t, c, bin)) })
	t.Run("pod deleted", func(t *testing.T) { deletedOnKubernetes(newPodded(t, c, bin)) })
	t.Run("no kubeconfig", func(t *testing.T) { noKubeconfig(newPodded(t, c, bin)) })
}

func campaignOnKubernetes(p *podded) {
	t := p.t
	p.must(0, "plan").says(t, "Planned for machine h200",
		"2 of these nodes run as jobs of executor gpu, at most 1 at once")
	o := p.must(0, "apply")
	o.says(t, "job benchgraph-", " is submitted", "Apply: 5 done")
	p.must(0, "plan").says(t, "Plan: 0 to run")
	p.must(0, "logs", `trial.speed["c#1"]`).says(t, "line of 7 bytes", "block 1: ")
	text, _ := p.objects()
	check(t, filepath.WalkDir(p.shared, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(path, filepath.Join(p.shared, "store")) {
			var content []byte
			content, err = os.ReadFile(path)
			text += string(content)
		}
		return err
	}))
	if strings.Contains(text, "hunter2") {
		t.Error("a secret is in a Job, in a Pod or in the shared store")
	}
}

// A command without a sandbox finds the request of its job neither in a file nor in the environment of one of its
// parent processes, and it finds no value of a variable.
func requestOnKubernetes(p *podded) {
	t := p.t
	p.write("words.hcl", `other = "victory"`+"\n")
	p.must(0, "apply", "-var=word=victory", "-var-file="+p.path("words.hcl")).says(t, "Apply: ")
	o := p.must(0, "logs", `trial.speed["c#1"]`)
	o.says(t, "\nsearched\n") // and not only in the text of the command
	o.saysNot(t, "\nfound")
}

// A killed apply leaves its Job, and the next apply follows that Job.
func killedOnKubernetes(p *podded) {
	t := p.t
	check(t, os.WriteFile(p.hold, nil, 0o644))
	cmd := p.command("apply")
	check(t, cmd.Start())
	p.running()
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	time.AfterFunc(2*time.Second, func() { _ = os.Remove(p.hold) })
	p.must(0, "apply").says(t, "was submitted before", "Apply: ")
	if _, n := p.objects(); n > 2 {
		t.Errorf("%d Jobs for two blocks", n)
	}
}

// A block with a result is measured again as a Job, see againtest.
func againOnKubernetes(p *podded) {
	s := p.again(p.shared)
	s.Running = p.running
	s.Jobs = func() int {
		_, n := p.objects()
		return n
	}
	s.Over = func() {
		until(p.t, "no Pod runs", func() bool {
			text, _ := p.objects()
			return !strings.Contains(text, `"phase":"Running"`)
		})
	}
	s.Test(p.t)
}

// If somebody deletes a Pod, its block loses nothing: another Job is submitted.
func deletedOnKubernetes(p *podded) {
	t := p.t
	check(t, os.WriteFile(p.hold, nil, 0o644))
	var stderr strings.Builder
	cmd := p.command("apply")
	cmd.Stderr = &stderr
	check(t, cmd.Start())
	p.running()
	check(t, p.cluster.Core.Delete().Namespace(p.namespace).Resource("pods").Do(context.Background()).Error())
	until(t, "no Pod runs", func() bool {
		text, _ := p.objects()
		return !strings.Contains(text, `"phase":"Running"`)
	})
	check(t, os.Remove(p.hold))
	if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), "ended as PREEMPTED") {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}

// An interrupt deletes the Jobs of an apply, and waits until their Pods are gone.
func interruptedOnKubernetes(p *podded) {
	t := p.t
	check(t, os.WriteFile(p.hold, nil, 0o644))
	cmd := p.command("apply")
	check(t, cmd.Start())
	p.running()
	check(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if text, n := p.objects(); n != 0 || strings.Contains(text, `"kind":"Pod"`) {
		t.Errorf("%d Jobs are left: %s", n, text)
	}
}

// Without a kubeconfig, nothing starts.
func noKubeconfig(p *podded) {
	t := p.t
	p.world.env = append(p.world.env, "KUBECONFIG="+p.path("nowhere"))
	o := p.must(1, "apply")
	o.says(t, "executor gpu: kubernetes: no kubeconfig names a cluster", "KUBECONFIG")
	o.saysNot(t, "Apply: ")
	if _, n := p.objects(); n != 0 {
		t.Errorf("%d Jobs", n)
	}
	p.world.env = append(p.world.env, "KUBECONFIG="+p.cluster.Kubeconfig(p.shared, "admin", "nowhere"))
	p.must(1, "apply").says(t, `namespaces "nowhere" not found; correct namespace in the executor block`)
	p.world.env = append(p.world.env, "KUBECONFIG="+p.cluster.Kubeconfig(p.shared, "nobody", p.namespace))
	p.must(1, "apply").says(t, "may not create, delete, get, list jobs; list pods; ",
		"have the user given these rights")
}
