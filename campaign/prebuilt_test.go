package campaign_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/campaign"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
)

// wheelOf returns a wheel of the package pkg with these files.
func wheelOf(version string, files map[string]string) []byte {
	info := "pkg-" + version + ".dist-info/"
	all := maps.Clone(files)
	all[info+"METADATA"] = "Metadata-Version: 2.1\nName: pkg\nVersion: " + version + "\n"
	all[info+"WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
	record := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sum := sha256.Sum256([]byte(all[name]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[name]))
	}
	all[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// shelf serves wheels over HTTP, by path, and notes the requests.
type shelf struct {
	*httptest.Server
	mu     sync.Mutex
	wheels map[string][]byte
	gone   map[string]bool // these exist when they are asked for, but cannot be fetched
	asked  []string
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{wheels: map[string][]byte{}, gone: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		text, ok := s.wheels[r.URL.Path]
		if !ok || s.gone[r.URL.Path] && r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(text))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shelf) put(rev string, wheel []byte) { s.wheels["/"+rev+"/pkg.whl"] = wheel }

// servedProject is a project whose wheels are built, or fetched from the shelf.
const servedProject = `
repo "r" { path = "repo" }
commit "c" { rev = "main" }
variant "base" {
  baseline = true
  rev      = each.commit.parent
}
variant "human" {}
variant "agent" {
  rev   = each.commit.parent
  patch = "agent.diff"
}
wheel "pkg" {
  for_each = candidates
  source   = each.source
  prebuilt = ["%s/${each.rev}/pkg.whl"]
  overlay  = ["pkg/**/*.py"]
  %s
  build { command = "cp wheels/pkg.whl $OUT/" }
  outputs = ["*.whl"]
}
`

// historyOf makes commits of a package, and the patch of an agent. All commits but the first change only Python files.
func (s *story) historyOf(n int) []string {
	var revs []string
	for i := range n {
		revs = append(revs, s.commit(map[string]string{"pkg/a.py": fmt.Sprintf("a %d\n", i), "pkg/b.py": "b\n",
			"csrc/core.c": "native\n"}))
	}
	s.git("checkout", "-q", "--detach", revs[n-2])
	s.write("repo/pkg/a.py", "of the agent\n")
	s.write("agent.diff", s.git("diff")+"\n")
	s.git("checkout", "-q", "--force", "main")
	return revs
}

func (s *story) content(address, name string) string {
	text := ""
	s.open(func(ctx context.Context, p *campaign.Project) {
		plan, err := p.Plan(ctx, campaign.PlanOptions{})
		must(s.t, err)
		step, ok := plan.Step(address)
		if !ok {
			s.t.Fatalf("no %s", address)
		}
		end, err := plan.End(ctx, p.Store, step)
		must(s.t, err)
		text = unzip(s.t, end.Entry, name)
	})
	return text
}

// The wheel of an ancestor with the same native tree serves all candidates, with their own files laid over it.
func TestAnAncestorsWheelServes(t *testing.T) {
	t.Parallel()
	shelf, s := newShelf(t), tell(t, nil)
	revs := s.historyOf(6)
	shelf.put(revs[1], wheelOf("1.dev1+g"+revs[1][:9], map[string]string{
		"pkg/a.py": "a 1\n", "pkg/b.py": "b\n", "pkg/core.so": "compiled", "pkg/_version.py": "version = '1.dev1+g" +
			revs[1][:9] + "'\n",
	}))
	s.write("benchmarks.hcl", fmt.Sprintf(servedProject, shelf.URL, "nearest = 5"))
	applied := s.apply()
	if applied.Result.Failed > 0 {
		t.Fatalf("%+v", applied.Result)
	}
	for variant, want := range map[string]struct {
		back int
		text string
	}{"base": {3, "a 4\n"}, "human": {4, "a 5\n"}, "agent": {3, "of the agent\n"}} {
		step, _ := applied.Plan.Step(`wheel.pkg["c/` + variant + `"]`)
		if o := step.Node.Origin; o.Ancestor != revs[1] || o.Back != want.back ||
			o.Serves != shelf.URL+"/"+revs[1]+"/pkg.whl" {
			t.Errorf("%s: %+v", variant, o)
		}
		for name, text := range map[string]string{"pkg/a.py": want.text, "pkg/core.so": "compiled", "pkg/b.py": "b\n",
			"pkg/_version.py": "version = '1.dev1+g" + revs[1][:9] + "'\n"} {
			if got := s.content(`wheel.pkg["c/`+variant+`"]`, name); got != text {
				t.Errorf("%s has %q in %s", variant, got, name)
			}
		}
	}
	if near := s.lock.Nearest["pkg"]["c/human"]; near != (lockfile.Near{Commit: revs[1], Back: 4}) {
		t.Errorf("the lock pins %+v", near)
	}
	gets := slices.DeleteFunc(slices.Clone(shelf.asked), func(q string) bool { return !strings.HasPrefix(q, "GET") })
	if len(gets) != 1 || len(shelf.asked) > 12 {
		t.Errorf("fetched %q, asked for %d: %q", gets, len(shelf.asked), shelf.asked)
	}
	// From now on, the lock alone names the wheel.
	shelf.asked, s.offline = nil, true
	if s.apply(); len(s.ran()) > 0 || len(shelf.asked) > 0 {
		t.Errorf("offline %q ran, and %q was asked", s.ran(), shelf.asked)
	}
	// If the ancestor is too far back, or the overlay is another one, the pin does not hold.
	s.offline = false
	for edit, text := range map[string]string{"not so far": "nearest = 2", "not at all": ""} {
		s.write("benchmarks.hcl", fmt.Sprintf(servedProject, shelf.URL, text))
		s.open(func(ctx context.Context, p *campaign.Project) {
			plan, err := p.Plan(ctx, campaign.PlanOptions{})
			must(t, err)
			step, _ := plan.Step(`wheel.pkg["c/human"]`)
			if o := step.Node.Origin; o.Serves != "" {
				t.Errorf("%s: %+v", edit, o)
			}
		})
	}
}

// A wheel that is not of its revision is refused, with the evidence. The next source serves, or the wheel is built.
func TestAPrebuiltWheelIsProven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string // with the revision in the place of %s
		files   map[string]string
		gone    bool
		want    string
	}{
		"another commit's file": {"1", map[string]string{"pkg/a.py": "a 3\n", "pkg/b.py": "b\n"}, false,
			"pkg/a.py is not that of "},
		"another file and overlay": {"1", map[string]string{"pkg/a.py": "a 4\n", "setup.cfg": "other\n"}, false,
			"setup.cfg is not that of "},
		"another version": {"1.dev3+g0123456", map[string]string{"pkg/a.py": "a 4\n"}, false,
			"its version is 1.dev3+g0123456, so it was built from 0123456"},
		"another version file": {"1", map[string]string{"pkg/a.py": "a 4\n",
			"pkg/_version.py": "v = '1+g7654321.d2025'\n"}, false,
			"its pkg/_version.py says that it was built from 7654321"},
		"not fetched": {"1", map[string]string{"pkg/a.py": "a 4\n"}, true, "404"},
		"good": {"1.dev5+g%s.cu12", map[string]string{"pkg/a.py": "a 4\n", "setup.cfg": "same\n",
			"pkg/generated.py": "x"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shelf, s := newShelf(t), tell(t, nil)
			s.commit(map[string]string{"setup.cfg": "same\n", "wheels/pkg.whl": string(wheelOf("1",
				map[string]string{"pkg/a.py": "built\n"}))})
			revs := s.historyOf(6)
			rev := revs[4]
			version := strings.ReplaceAll(c.version, "%s", rev[:8])
			shelf.put(rev, wheelOf(version, c.files))
			shelf.gone["/"+rev+"/pkg.whl"] = c.gone
			s.write("benchmarks.hcl", fmt.Sprintf(servedProject, shelf.URL, ""))
			applied := s.apply()
			step, _ := applied.Plan.Step(`wheel.pkg["c/base"]`)
			if c.want == "" {
				if step.Node.Origin.Serves == "" || s.content(`wheel.pkg["c/base"]`, "pkg/generated.py") != "x" {
					t.Errorf("%+v", step.Node.Origin)
				}
				return
			}
			if applied.Result.Failed > 0 || step.Node.Origin.Serves != "" ||
				!strings.Contains(step.Node.Origin.Passed[0], c.want) {
				t.Errorf("%+v; %+v", step.Node.Origin, applied.Result)
			}
			told := false
			for _, e := range s.events {
				told = told || strings.Contains(e.Reason, "is passed over: ") && strings.Contains(e.Reason, c.want)
			}
			if !told {
				t.Error("nobody is told")
			}
			if got := s.content(`wheel.pkg["c/base"]`, "pkg/a.py"); got != "a 4\n" {
				t.Errorf("what was built has %q", got)
			}
			shelf.asked = nil
			if s.apply(); len(s.ran()) > 0 || len(shelf.asked) > 0 {
				t.Errorf("again: %q ran, and %q was asked", s.ran(), shelf.asked)
			}
		})
	}
}
