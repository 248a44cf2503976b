package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/device/gpu/nvmltest"
	"github.com/benchgraph/benchgraph/executor/slurm/slurmtest"
)

// module is the directory of Apptainer in the system that container/containertest/engines/run makes. It is not in PATH,
// as on a cluster that has Apptainer as a module.
const module = "/opt/apptainer/bin"

// submitted is a project of a user on a machine that has neither Docker nor Apptainer, and submits jobs to two nodes
// with Apptainer. Each node has a disk of its own, and does not see the project's directory.
type submitted struct {
	*world
	*slurmtest.Cluster
	shared string       // directory that all machines see
	hold   string       // while this file exists, measured commands do not end
	brings atomic.Int32 // how often the registry has sent the layer of the image
}

// ofUser makes a command run as the user.
func ofUser(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	return cmd
}

func (s *submitted) command(args ...string) *exec.Cmd { return ofUser(s.world.command(args...)) }

func (s *submitted) must(code int, args ...string) outcome {
	s.t.Helper()
	o := s.finish(s.command(args...))
	o.exits(s.t, code)
	return o
}

// on runs a command as a job of the user on a node, and returns its output.
func (s *submitted) on(node string, argv ...string) string {
	s.t.Helper()
	srun, err := exec.LookPath("srun")
	check(s.t, err)
	cmd := ofUser(exec.Command(srun, append([]string{"--nodelist=" + node}, argv...)...))
	cmd.Env, cmd.Dir = s.env, "/"
	o := s.finish(cmd)
	o.exits(s.t, 0)
	return o.stdout
}

// submittedFile has two commits, whose blocks are measured at the same time.
const submittedFile = `
benchgraph {
  store { url = "file://SHARED/store" }
}
machine "node" { devices = "machines/node.json" }
executor "slurm" "nodes" {
  machine  = machine.node
  program  = "SHARED/benchgraph"
  work_dir = "SHARED/jobs"
  setup    = <<-EOT
    . /etc/profile.d/modules.sh
    module use SHARED/modules
    module load apptainer
  EOT
  max_jobs = 4
}
commit "c" {}
commit "d" {}
variant "base" { baseline = true }
variant "fast" {}
variant "broken" {}
image "tools" { from = "TOOLS" }
mount "shared" {
  source   = "SHARED/seen"
  target   = "/seen"
  identity = "none"
}
task "built" {
  for_each = candidates
  command  = "echo ${each.key} > $OUT/made"
  artefact = true
}
benchmark "speed" {
  for_each = candidates
  image    = image.tools
  data     = { "in" = task.built[each.key] }
  mounts   = [mount.shared]
  command  = <<-EOT
    echo "user $(id -u), $(ls /var/run/docker.sock /run/docker.sock 2>/dev/null | wc -l) sockets"
    case $(cat in) in
    *broken) echo no such kernel; exit 3;;
    *fast) echo "work done: 200.$(($$ % 10))";;
    *) echo "work done: 100.$(($$ % 10))";;
    esac
    while [ -e /seen/hold ]; do sleep 0.568; done
  EOT
  RATE
  design { samples = 4 }
}
compare "speed" { of = [benchmark.speed] }
`

func newSubmitted(t testing.TB, file string, vars ...string) *submitted {
	t.Helper()
	if _, err := os.Stat(module); err != nil || os.Getuid() != 0 {
		t.Skip("container/containertest/engines/run apptainer brings an Apptainer that is in no PATH")
	}
	s := &submitted{world: newWorld(t, "")}
	var err error
	s.shared, err = os.MkdirTemp("/srv", "benchgraph-test-")
	check(t, err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", s.shared).Run(); _ = os.RemoveAll(s.shared) })
	s.hold = filepath.Join(s.shared, "seen", "hold")
	check(t, os.WriteFile("/run/docker.sock", nil, 0o600)) // as of an engine that is for others
	const disk, authority = "/mnt", "authority.pem"
	s.Cluster = slurmtest.Start(t, slurmtest.Nodes{Count: 2, GPUs: 2, Hides: s.path("."), Disk: disk})
	for _, node := range []string{"n1", "n2"} {
		s.Profile(node, append(vars, "TMPDIR="+disk, "BENCHGRAPH_HOST_LOCK="+disk+"/lock",
			"SSL_CERT_FILE="+filepath.Join(s.shared, authority))...)
	}
	tools, certificate := s.publish()
	self, err := os.ReadFile("/proc/self/exe")
	check(t, err, os.Mkdir(filepath.Join(s.shared, "store"), 0o755), os.Mkdir(filepath.Join(s.shared, "seen"), 0o755),
		os.WriteFile(filepath.Join(s.shared, "benchgraph"), self, 0o755),
		os.WriteFile(filepath.Join(s.shared, authority), certificate, 0o644), os.Mkdir(s.path("machines"), 0o755),
		os.Chmod(s.shared, 0o755), os.Chmod(filepath.Dir(s.path(".")), 0o755))
	t.Setenv("PATH", s.shared+":"+os.Getenv("PATH"))
	s.env = append(append(s.env, s.Environ()...), "SSL_CERT_FILE="+filepath.Join(s.shared, authority),
		"PATH="+s.shared+":/usr/bin:/bin", "HOME="+s.path(".home"))
	s.write("benchmarks.hcl", strings.NewReplacer("SHARED", s.shared, "RATE", rate, "TOOLS",
		tools).Replace(file))
	apptainer := filepath.Join(s.shared, "modules", "apptainer")
	check(t, os.MkdirAll(filepath.Dir(apptainer), 0o755),
		os.WriteFile(apptainer, []byte("#%Module\nprepend-path PATH "+module+"\n"), 0o644))
	s.write("machines/node.json", s.on("n1", "--gpus=2", filepath.Join(s.shared, "benchgraph"), "devices", "-json"))
	out, err := exec.Command("chown", "-R", "1000:1000", s.path("."), s.shared).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return s
}

// publish puts busybox into a registry that the nodes reach, and returns its name and the certificate of the registry.
func (s *submitted) publish() (tools string, certificate []byte) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(s.t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP(s.Gateway())}}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	check(s.t, err)
	images, name, layer := registryWithTools(s.t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, layer) {
			s.brings.Add(1)
		}
		images.ServeHTTP(w, r)
	}))
	server.Listener.Close()
	server.Listener, err = net.Listen("tcp", s.Gateway()+":0")
	check(s.t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}}}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	name, _, _ = strings.Cut(name, "@")
	return strings.TrimPrefix(server.URL, "https://") + name + ":1",
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
}

// runs reports whether a program with a text in its command line runs.
func runs(text string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(file string) bool {
		argv, _ := os.ReadFile(file)
		return strings.Contains(string(argv), text)
	})
}

// measures waits until a job measures.
func (s *submitted) measures() {
	s.t.Helper()
	until(s.t, "what is measured", func() bool { return runs("sleep\x000.568\x00") })
}

// leavesNothing makes sure that jobs have left no process, and no directory of their own on their node.
func (s *submitted) leavesNothing(node string) {
	s.t.Helper()
	until(s.t, "the end of all containers", func() bool { return !runs("0.568") })
	left := s.on(node, "find", "/mnt", "-maxdepth", "2")
	if strings.Contains(left, "/job-") || strings.Contains(left, "-apptainer-") ||
		!strings.Contains(left, "benchgraph-store-1000\n") {
		s.t.Errorf("left on %s:\n%s", node, left)
	}
}

// A user of a cluster measures in an image if the nodes have Apptainer, although no machine has Docker.
func TestACampaignOnSlurmByApptainer(t *testing.T) {
	s := newSubmitted(t, submittedFile)
	s.must(0, "doctor").says(t, "containers       none, and nothing here needs one: images are for jobs")
	o := s.must(0, "plan")
	o.says(t, "8 of these nodes run as jobs of executor nodes", "run      image.tools")
	o.saysNot(t, "container engine")
	o = s.must(3, "apply")
	o.says(t, "image.tools  is left to the jobs that use it", "2 failed + 2 win", "no such kernel")
	s.must(0, "status").says(t, "2 failed + 2 win")
	s.must(0, "report").says(t, "/report/report.md")
	s.must(0, "logs", `trial.speed["c#1"]`).says(t, "user 1000, 0 sockets", "no such kernel")
	s.must(0, "plan").says(t, "Plan: 0 to run")
	if n := s.brings.Load(); n != 1 {
		t.Errorf("one node has brought its image %d times", n)
	}
	s.must(3, "apply", `-replace=trial.speed["c#1"]`).says(t, "2 failed + 2 win")
	if n := s.brings.Load(); n != 1 {
		t.Errorf("a job that makes a result again has brought the image of its node again: %d times", n)
	}
	s.leavesNothing("n1")
	s.Drain("n1")
	s.must(3, "apply", `-replace=trial.speed["c#1"]`)
	if n := s.brings.Load(); n != 2 {
		t.Errorf("two nodes have brought an image %d times", n)
	}
}

// A container ends with its job, whether the job is cancelled or its worker is killed. The next job removes the
// leftovers of a killed worker.
func TestContainersEndOnSlurmByApptainer(t *testing.T) {
	s := newSubmitted(t, strings.Replace(submittedFile, "commit \"d\" {}", "", 1))
	check(t, os.WriteFile(s.hold, nil, 0o644))
	cmd := s.command("apply")
	done := make(chan outcome, 1)
	go func() { done <- s.finish(cmd) }()
	s.measures()
	check(t, cmd.Process.Signal(os.Interrupt))
	o := <-done
	o.exits(t, 130)
	o.says(t, "interrupted")
	if queue := s.Command("squeue", "-h", "-o", "%i"); queue != "" {
		t.Errorf("jobs %s are left of an apply that was interrupted", queue)
	}
	s.leavesNothing("n1")
	cmd = s.command("apply")
	go func() { done <- s.finish(cmd) }()
	s.measures()
	s.killWorker()
	until(t, "the end of the container", func() bool { return !runs("0.568") })
	o = <-done
	o.exits(t, 3)
	o.says(t, "infra: job ", " ended as FAILED on n1 without a result")
	check(t, os.Remove(s.hold))
	s.must(3, "apply").says(t, "1 failed + 1 win")
	s.leavesNothing("n1")
}

// killWorker kills the worker of the job that measures.
func (s *submitted) killWorker() {
	s.t.Helper()
	killed := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		argv, _ := os.ReadFile(file)
		if strings.HasPrefix(string(argv), filepath.Join(s.shared, "benchgraph")+"\x00worker\x00") {
			check(s.t, syscall.Kill(number(filepath.Base(filepath.Dir(file))), syscall.SIGKILL))
			killed++
		}
	}
	if killed != 1 {
		s.t.Errorf("%d workers were killed", killed)
	}
}

// The error on a node without an engine says how to have Apptainer there.
func TestNoEngineOnSlurmByApptainer(t *testing.T) {
	s := newSubmitted(t, strings.Replace(submittedFile, "module load apptainer", "", 1))
	s.must(3, "apply").says(t, "cannot run here: image.tools needs a container engine: no container engine at unix://",
		"have setup of the executor block load Apptainer")
}

// A job has two devices by NVML, on a node without the device files of NVIDIA's driver: nothing is measured, and the
// failure says why.
func TestDevicesOnSlurmByApptainer(t *testing.T) {
	library, scenario := os.Getenv("BENCHGRAPH_TEST_NVML"), filepath.Join(t.TempDir(), "scenario")
	if library == "" {
		t.Skip("container/containertest/engines/run apptainer builds a library that plays NVML")
	}
	check(t, os.WriteFile(scenario, []byte(nvmltest.Scenario("n1", "NVIDIA_H200", 143771, 2)), 0o644))
	s := newSubmitted(t, strings.Replace(submittedFile, "  RATE", "  gpus { count = 2 }\n  RATE", 1),
		"BENCHGRAPH_NVML="+library, "NVML_SCENARIO="+scenario)
	s.must(0, "plan").says(t, "2 × NVIDIA H200")
	s.must(3, "apply").says(t, "cannot run here: needs devices in containers: ", "there is no /dev/nvidiactl",
		"load NVIDIA's driver")
}
