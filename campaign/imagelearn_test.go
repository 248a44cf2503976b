package campaign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/container/containertest"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/stats"
)

const learning = `
repo "r" { path = "repo" }
commit "c" {
  repo   = repo.r
  rev    = "main"
  parent = "main~1"
}
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "agent" { rev = each.commit.rev }

image "WORD" {
  for_each = candidates
  from     = "BASE"
  fixes    = [fix.word]
  verify   = "true # WORD"
}
fix "word" {
  detect = "can't open '/etc/word'"
  run    = ["echo %s > /etc/word"]
  effect = "perf"
}
benchmark "b" {
  for_each = candidates
  image    = image.WORD[each.key]
  command  = "cat /etc/word && echo m 5"
  design { samples = 3 }
  metrics {
    metric "m" { match = "m ([0-9]+)" }
  }
}
compare "all" { of = [benchmark.b] }
`

// A run that fails for want of a fix gets the fix within the same apply, in the images of all variants of its commit,
// as one more layer. The lock file has the reason.
func TestAFixIsLearntIntoTheImagesOfAllVariants(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	s.commit(map[string]string{"a": "1"})
	s.commit(map[string]string{"a": "2"})
	s.write("benchmarks.hcl", fmt.Sprintf(learning, "WORD"))
	s.apply()
	learnt := s.lock.Fixes["word"]
	if len(learnt) != 1 || learnt[0].Commit != "c" || !strings.Contains(learnt[0].Evidence, "can't open '/etc/word'") {
		t.Fatalf("learnt: %+v", learnt)
	}
	for _, variant := range []string{"base", "agent"} {
		r := s.image(fmt.Sprintf("image.%s[\"c/%s\"]", s.word, variant))
		if got := s.inside(r.ID, "cat", "/etc/word"); got != s.word+"\n" {
			t.Errorf("%s: %q in the image", variant, got)
		}
	}
	for candidate, outcome := range s.outcomes() {
		if outcome == stats.BuildFailed || outcome == stats.Infra {
			t.Errorf("%s: %s", candidate, outcome)
		}
	}
	applied := 0
	for _, e := range s.events {
		if e.Type == engine.FixApplied {
			applied++
		}
	}
	if applied != 2 {
		t.Errorf("the fix was applied %d times", applied)
	}
	s.apply()
	if ran := s.ran(); len(ran) > 0 {
		t.Errorf("the second apply ran %q", ran)
	}
}

// A server that does not come up teaches, too: its output is searched like that of any command.
func TestAServerThatDoesNotStartTeachesAFix(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	s.commit(map[string]string{"a": "1"})
	s.commit(map[string]string{"a": "2"})
	s.write("benchmarks.hcl", strings.Replace(fmt.Sprintf(learning, "WORD"), `command  = "cat /etc/word && echo m 5"`,
		`server {
    command = "cat /etc/word; echo up; exec httpd -f -p 127.0.0.1:$PORT"
    ready { tcp = true }
  }
  command  = "echo m 5"`, 1))
	s.mustDo()
	if learnt := s.lock.Fixes["word"]; len(learnt) != 1 || learnt[0].Commit != "c" ||
		!strings.Contains(learnt[0].Evidence, "can't open '/etc/word'") {
		t.Fatalf("learnt: %+v", learnt)
	}
	for _, variant := range []string{"base", "agent"} {
		if got := s.result(`trial.b["c#3"]`, variant+"/server.log"); got != s.word+"\nup\n" {
			t.Errorf("the server of %s said %q", variant, got)
		}
	}
	for candidate, outcome := range s.outcomes() {
		if outcome == stats.Failed || outcome == stats.NoBaseline {
			t.Errorf("%s: %s", candidate, outcome)
		}
	}
}

// A fix is tried once. A failure that the fix does not cure stays, and the apply ends.
func TestAFixThatDoesNotHelpIsTriedOnce(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	s.commit(map[string]string{"a": "1"})
	s.commit(map[string]string{"a": "2"})
	s.write("benchmarks.hcl", strings.Replace(fmt.Sprintf(learning, "WORD"), "> /etc/word", "> /etc/another", 1))
	s.apply()
	starts := 0
	for _, e := range s.events {
		if e.Type == engine.NodeStart && strings.HasPrefix(e.Address, "trial.") {
			starts++
		}
	}
	if len(s.lock.Fixes["word"]) != 1 || starts > 4 {
		t.Errorf("learnt %+v, %d blocks were begun", s.lock.Fixes["word"], starts)
	}
}

// A fix that was learnt from one variant may have nothing to do in another one, whose verify passes without the fix.
func TestALearntFixThatIsNotNeededIsLeftOut(t *testing.T) {
	t.Parallel()
	s := picture(t, nil)
	s.commit(map[string]string{"a": "1"})
	s.commit(map[string]string{"a": "2"})
	text := strings.NewReplacer(
		`run    = ["echo %s > /etc/word"]`,
		"run    = [\"grep -q . /etc/word && exit 0; echo WORD > /etc/word\"]\n  verify = \"test -s /etc/word\"",
		`fixes    = [fix.word]`, "fixes    = [fix.word, fix.had]",
	).Replace(learning) + `
fix "had" {
  when = each.variant.name == "agent"
  run  = ["echo WORD had it > /etc/word"]
}
`
	s.write("benchmarks.hcl", strings.Replace(text, `fix "word" {`, "fix \"word\" {\n  after = [fix.had]", 1))
	s.apply()
	if r := s.image(fmt.Sprintf(`image.%s["c/agent"]`, s.word)); !slices.ContainsFunc(r.Steps, func(step struct {
		What, Chain, ID, Skipped string
	}) bool {
		return step.What == "fix word" && strings.Contains(step.Skipped, "nothing to do")
	}) {
		t.Errorf("%+v", r.Steps)
	}
	if r := s.image(fmt.Sprintf(`image.%s["c/base"]`, s.word)); s.inside(r.ID, "cat", "/etc/word") != s.word+"\n" {
		t.Errorf("%+v", r)
	}
}

// A build is made anew when a file of its context has changed, and only then. It has a network, as Podman builds
// nothing without one.
func TestABuildIsKeyedByItsContext(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{
		"benchmarks.hcl": "image \"WORD\" {\n build {\n  context = \"docker\"\n  args = { WHO = \"WORD\" }\n }\n " +
			"network = true\n verify = [\"/bin/busybox\", \"test\", \"-s\", \"/who\"]\n}\n",
		"docker/Dockerfile": "FROM scratch\nARG WHO\nCOPY bin/busybox /bin/busybox\nCOPY text /text\n" +
			"SHELL [\"/bin/busybox\", \"sh\", \"-c\"]\nRUN echo $WHO > /who\n",
		"docker/.dockerignore": "notes\n", "docker/notes": "1", "docker/text": "one\n",
	})
	binary, err := os.ReadFile("/bin/busybox")
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(s.dir, "docker/bin"), 0o755))
	must(t, os.WriteFile(filepath.Join(s.dir, "docker/bin/busybox"), binary, 0o755))
	s.apply()
	node := "image." + s.word
	first := s.image(node)
	if got := s.inside(first.ID, "/bin/busybox", "cat", "/who", "/text"); got != s.word+"\none\n" {
		t.Errorf("in the image: %q", got)
	}
	s.write("docker/notes", "2")
	s.apply()
	if ran := s.ran(); len(ran) > 0 {
		t.Errorf("what .dockerignore leaves out made it anew: %q", ran)
	}
	s.write("docker/text", "two\n")
	s.apply()
	if second := s.image(node); second.ID == first.ID ||
		s.inside(second.ID, "/bin/busybox", "cat", "/text") != "two\n" {
		t.Errorf("%+v", second)
	}
	s.write("docker/Dockerfile",
		"FROM scratch\nCOPY bin/busybox /bin/busybox\nRUN [\"/bin/busybox\", \"sh\", \"-c\", \"echo WORD is wrong; "+
			"exit 4\"]\n")
	s.apply()
	if f := s.failure(node); f.Stage != "build" || !strings.Contains(f.Evidence+f.Message, "4") {
		t.Errorf("%+v", f)
	}
}

// The tar of a root file system is an image, too, and another image may begin with that.
func TestAnImageBeginsWithWhatATaskMade(t *testing.T) {
	t.Parallel()
	s := picture(t, map[string]string{"benchmarks.hcl": `
task "root" {
  command = "mkdir bin; cp /bin/busybox bin/; ln -s busybox bin/sh; ln -s busybox bin/cat; echo WORD > word; tar -cf $OUT/root.tar bin word"
}
image "first_WORD" { from = task.root }
image "WORD" {
  from  = image.first_WORD
  fixes = [fix.more]
}
fix "more" { run = ["cat /word /word > /words"] }
`})
	s.apply()
	first, second := s.image("image.first_"+s.word), s.image("image."+s.word)
	if got := s.inside(second.ID, "/bin/cat", "/words"); got != s.word+"\n"+s.word+"\n" || first.Chain == second.Chain {
		t.Errorf("%q\n%+v\n%+v", got, first, second)
	}
}

// Names of images are pinned when they are first planned, by the engine's own images if it has them.
func TestNamesOfImagesArePinned(t *testing.T) {
	t.Parallel()
	s := picture(t,
		map[string]string{"benchmarks.hcl": "image \"WORD\" {\n from = \"127.0.0.1:1/WORD:v1\"\n}\ntask \"t\" { " +
			"command = \"echo t > $OUT/t\" }\ntask \"u\" {\n needs = [image.WORD]\n command = \"true\"\n}\n"})
	told := ""
	plan := func() (reason string) {
		diags := s.open(func(ctx context.Context, p *campaign.Project) {
			plan, err := p.Plan(ctx, campaign.PlanOptions{})
			must(t, err)
			step, _ := plan.Step("image." + s.word)
			reason = string(step.Action) + ": " + step.Reason
			s.lock = p.Lock
		})
		told = diags.Error()
		return reason
	}
	s.offline = true
	if got := plan(); !strings.Contains(got, "blocked: image 127.0.0.1:1/"+s.word+":v1 is not known") ||
		!strings.Contains(got, "-offline") || !strings.Contains(told, "Image cannot be resolved") {
		t.Errorf("%s; %s", got, told)
	}
	s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{"task.t"}) {
		t.Errorf("ran %q", ran)
	}
	s.locked = true
	if got := plan(); got != "" || !strings.Contains(told, "-locked forbids") {
		t.Errorf("%s; %s", got, told)
	}
	s.locked = false
	s.lock.Images = map[string]lockfile.Image{"127.0.0.1:1/" + s.word + ":v1": {Digest: s.base}}
	if got := plan(); !strings.HasPrefix(got, "run:") || strings.Contains(told, "resolved") {
		t.Errorf("%s; %s", got, told)
	}
	s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{"image." + s.word, "task.u"}) {
		t.Errorf("ran %q", ran)
	}
}

// Without an engine, everything that needs none works; for the rest, the plan says what is missing.
func TestWithoutAnEngineTheRestWorks(t *testing.T) {
	t.Parallel()
	s := tell(t,
		map[string]string{"benchmarks.hcl": "image \"i\" { from = \"example.org/app:1\" }\ntask \"t\" { command = " +
			"\"echo t > $OUT/t\" }\ntask \"u\" {\n image = image.i\n command = \"true\"\n}\n"})
	s.lock.Images = map[string]lockfile.Image{"example.org/app:1": {Digest: "sha256:" + strings.Repeat("0", 64)}}
	s.engine = container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix://" + s.dir +
		"/none.sock"}, State: s.dir})
	r := s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{"task.t"}) || r.Result.Blocked != 2 {
		t.Errorf("ran %q: %+v", ran, r.Result)
	}
	for i := range r.Plan.Steps {
		if step := &r.Plan.Steps[i]; step.Node.Address == "image.i" &&
			!strings.Contains(step.Reason, "container engine") {
			t.Errorf("%s: %s", step.Action, step.Reason)
		}
	}
}

// A finished image is pushed by a node of its own: pushing it elsewhere costs only that push, and commands in the image
// do not wait for the push.
func TestAnImageIsPushedByANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	registry := containertest.NewRegistry(t)
	text := "image \"WORD\" {\n from = \"BASE\"\n fixes = [fix.it]\n push = \"" + registry.Host +
		"/app:%s\"\n}\nfix \"it\" { run = [\"echo WORD > /x\"] }\n" +
		"task \"t\" {\n image = image.WORD\n command = \"cat /x > $OUT/x\"\n}\n"
	s := picture(t, map[string]string{"benchmarks.hcl": fmt.Sprintf(text, "one")})
	s.apply()
	var pushed struct{ Ref, Digest, ID string }
	must(t, json.Unmarshal([]byte(s.result("push."+s.word, "push.json")), &pushed))
	pin, err := s.engine.Resolve(t.Context(), registry.Host+"/app@"+pushed.Digest)
	if err != nil || pin.Digest != pushed.Digest || pushed.ID != s.image("image."+s.word).ID {
		t.Errorf("%+v in the registry, %v; pushed %+v", pin, err, pushed)
	}
	s.write("benchmarks.hcl", fmt.Sprintf(text, "two"))
	s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{"push." + s.word}) {
		t.Errorf("to push elsewhere ran %q", ran)
	}
	registry.Stop()
	s.write("benchmarks.hcl", fmt.Sprintf(text, "three"))
	s.offline = true
	s.apply()
	if f := s.failure("push." + s.word); f.Rule != "offline" {
		t.Errorf("%+v", f)
	}
}

// If a registry refuses a push for want of a login, the next apply tries again without a flag, since the user may have
// logged in.
func TestAPushThatIsDeniedIsTriedAgain(t *testing.T) {
	t.Parallel()
	registry := containertest.NewRegistry(t)
	real := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: registry.Host})
		r.Out.Host = r.In.Host // to which the registry's answers send on
	}}
	var loggedIn atomic.Bool
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loggedIn.Load() {
			w.Header().Set("Www-Authenticate", `Basic realm="registry"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}`)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	host := strings.TrimPrefix(door.URL, "http://")
	s := picture(t,
		map[string]string{"benchmarks.hcl": "image \"WORD\" {\n from = \"BASE\"\n fixes = [fix.it]\n push = \"" + host +
			"/app:one\"\n}\nfix \"it\" { run = [\"echo WORD > /x\"] }\n"})
	s.apply()
	if f := s.failure("push." + s.word); f.Rule != "registry_denied" || f.Class != failure.Infra ||
		!strings.Contains(f.Remedy, "docker login") {
		t.Errorf("%+v", f)
	}
	loggedIn.Store(true)
	s.ran()
	s.apply()
	if ran := s.ran(); !slices.Equal(ran, []string{"push." + s.word}) {
		t.Errorf("after the login ran %q", ran)
	}
	if text := s.result("push."+s.word, "push.json"); !strings.Contains(text, host+"/app") {
		t.Error(text)
	}
}

// between opens an engine behind handle, which sees every request first and passes it on.
func between(t testing.TB, e *container.Engine, handle func(w http.ResponseWriter, r *http.Request,
	engine http.Handler)) *container.Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(e.Host(), "unix://"))
	}}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(w, r, proxy)
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return container.Open(container.Options{Environ: map[string]string{"DOCKER_HOST": "unix://" + socket},
		State: e.State()})
}

// A thousand existing images cost a plan one question.
func TestAPlanAsksTheEngineHardlyAnything(t *testing.T) {
	t.Parallel()
	s := picture(t,
		map[string]string{"benchmarks.hcl": "image \"WORD\" {\n for_each = toset([for i in range(1000) : " +
			"\"i${i}\"])\n from = \"BASE\"\n fixes = [fix.it]\n}\nfix \"it\" { run = [\"echo WORD > /x\"] }\n"})
	s.apply()
	if len(s.mine()) != 1 {
		t.Errorf("%d images were made of one recipe", len(s.mine()))
	}
	real := s.engine
	var count atomic.Int64
	s.engine = between(t, real, func(w http.ResponseWriter, r *http.Request, engine http.Handler) {
		count.Add(1)
		engine.ServeHTTP(w, r)
	})
	s.apply()
	s.engine = real
	if ran := s.ran(); len(ran) > 0 || count.Load() == 0 || count.Load() > 5 {
		t.Errorf("%d questions; ran %q", count.Load(), ran)
	}
}

// installer plays python3 with a pip that unpacks into /site.
const installer = `#!/bin/sh
case "$1 $2 $3" in
"-c "*) echo purelib=/site; echo platlib=/site ;;
"-m pip install")
	for arg do
		case $arg in
		*.whl) unzip -q -o "$arg" -d /site; AFTER ;;
		*==*) mkdir -p "/site/${arg%%==*}-${arg##*==}.dist-info"; echo WORD > "/site/${arg%%==*}-${arg##*==}.dist-info/METADATA" ;;
		esac
	done ;;
esac
`

// An installer that does not put the wheel's files into the image is found out, since the files are read back from
// outside.
func TestAnInstallerThatLiesIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ after, message string }{
		"a file is another one": {"echo 'a = 2' > /site/WORD/__init__.py", "/site/WORD/__init__.py is not the wheel's"},
		"a file is a link": {"cd /site/WORD; mv __init__.py x; ln -s x __init__.py",
			"/site/WORD/__init__.py is not there"},
		"nothing is there":      {"rm -r /site/WORD", "/site/WORD is not there"},
		"it is as it should be": {":", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := picture(t, map[string]string{"python3.sh": strings.Replace(installer, "AFTER", tt.after, 1),
				"benchmarks.hcl": `
task "wheel" {
  inputs  = ["*.whl"]
  command = "cp *.whl $OUT/"
}
image "python_WORD" {
  from  = "BASE"
  fixes = [fix.python]
}
fix "python" {
  run = ["mkdir /site"]
  file {
    from = "python3.sh"
    to   = "/bin/python3"
  }
}
image "WORD" {
  from    = image.python_WORD
  install = [task.wheel]
  fixes   = [fix.pins]
}
fix "pins" { pip = ["num==1.26"] }
`})
			s.wheel(map[string]string{"WORD/__init__.py": "a = 1\n"})
			s.apply()
			if tt.message == "" {
				if r := s.image("image." + s.word); len(r.Packages) != 1 || r.Site != "/site" ||
					!strings.Contains(s.log("image."+s.word), "resolved to num==1.26") {
					t.Errorf("%+v\n%s", r, s.log("image."+s.word))
				}
				return
			}
			f := s.failure("image." + s.word)
			if f.Rule != "install_mismatch" || !strings.HasSuffix(f.Message,
				strings.ReplaceAll(tt.message, "WORD", s.word)) {
				t.Errorf("%+v", f)
			}
		})
	}
}
