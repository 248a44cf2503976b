package tasks

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
	"github.com/benchgraph/benchgraph/internal/overlay"
	"github.com/benchgraph/benchgraph/stats"
)

// contest is a project of a baseline and another variant, whose results tests lay down themselves.
func contest(f *testing.F) *Project {
	dir := f.TempDir()
	text := `
commit "c" {}
variant "base" { baseline = true }
variant "one" {}
benchmark "speed" {
  for_each = candidates
  command  = "./prog"
  design { samples = 4 }
  metrics {
    metric "items" {
      match  = "([0-9.]+) items/s"
      unit   = "items/s"
      better = "higher"
    }
  }
}
compare "all" { of = [benchmark.speed] }
`
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.hcl"), []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
	p, diags := Open(context.Background(), Config{
		StateDir: dir, Stat: cache.OpenStatCache(filepath.Join(dir, "stat")), Progress: io.Discard,
		Load: func(l *hclspec.Lock) (*hclspec.Spec, hcl.Diagnostics) {
			spec, _, diags := hclspec.Load(hclspec.Options{Dir: dir, Lock: l})
			return spec, diags
		},
	}, &hclspec.Lock{})
	if diags.HasErrors() {
		f.Fatal(diags)
	}
	if _, err := p.graph(context.Background()); err != nil {
		f.Fatal(err)
	}
	return p
}

// sound fails unless findings can be written down and say of every candidate what became of it.
func sound(t *testing.T, found Findings) {
	t.Helper()
	if _, err := json.Marshal(found); err != nil {
		t.Fatalf("%v: %+v", err, found)
	}
	if !slices.ContainsFunc(found.Comparisons, func(c stats.Comparison) bool { return c.Candidate == "c/one" && c.Outcome != "" }) {
		t.Fatalf("nothing is said of the candidate: %+v", found)
	}
}

// What a benchmark gathered is read back from the store, where anybody may have put it. Whatever it says, every candidate
// gets an outcome, and what is found can be written down.
func FuzzSamples(f *testing.F) {
	row := func(candidate string, block int, value float64) Measurement {
		return Measurement{Benchmark: "speed", Commit: "c", Candidate: "c/" + candidate, Block: block, Position: 1, Metric: "items", Value: value, Unit: "items/s"}
	}
	var base, one []Measurement
	for block := range 7 {
		base, one = append(base, row("base", block, 100+float64(block))), append(one, row("one", block, 200))
	}
	seed := func(rows []Measurement) []byte {
		text, err := json.Marshal(rows)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add(seed(base), seed(one))
	f.Add(seed(base[:3]), seed(append(slices.Clone(one), row("one", -1, -math.MaxFloat64), row("one", 1<<40, 5e-324))))
	f.Add([]byte(`[{"metric": "items", "block": 1, "value": 0}, {"metric": "items", "block": 2, "value": -0.0}]`), []byte("null"))
	p := contest(f)
	ends, store := map[string]engine.End{}, map[string]func([]byte){}
	for _, m := range p.groups[0].members {
		dir := f.TempDir()
		store[m.name] = fuzzing.Place(f, filepath.Join(dir, samplesFile))
		ends[m.bench.Address.String()] = engine.End{Address: m.bench.Address.String(), Entry: cache.Entry{Dir: dir}}
	}
	f.Fuzz(func(t *testing.T, base, one []byte) {
		store["base"](base)
		store["one"](one)
		var found Findings
		var err error
		fuzzing.Frugal(t, len(base)+len(one), func() { found, err = p.judge(&p.Spec.Compares[0], ends) })
		var rows []Measurement
		if unread := json.Unmarshal(base, &rows) != nil || json.Unmarshal(one, &rows) != nil; (err != nil) != unread {
			t.Fatalf("unreadable: %t, and %v", unread, err)
		}
		if err == nil {
			sound(t, found)
		}
	})
}

// So is what a block recorded of itself, and what an image did.
func FuzzRecord(f *testing.F) {
	record, err := json.Marshal(trialRecord{Block: 1, Seed: 7, Order: []string{"one", "base"}, Members: map[string]memberRecord{
		"base": {Candidate: "c/base"}, "one": {Candidate: "c/one", Failure: &cache.Failure{Class: cache.Permanent, Message: "broken"}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(bytes.ReplaceAll(record, []byte(`"failure"`), []byte(`"skipped":"x","f"`)))
	f.Add([]byte(`{"id": "sha256:00", "size": -1, "steps": [{"what": "a\nb", "versions": ["\u001b[2J"]}], "packages": [{"name": "a", "info": "/x/y"}]}`))
	p := contest(f)
	dir := f.TempDir()
	for _, name := range []string{"base", "one"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			f.Fatal(err)
		}
		fuzzing.Place(f, filepath.Join(dir, name, stdoutFile))([]byte("7 items/s\n"))
	}
	entry, storeTrial, storeImage := cache.Entry{Dir: dir}, fuzzing.Place(f, filepath.Join(dir, recordFile)), fuzzing.Place(f, filepath.Join(dir, imageFile))
	ends := map[string]engine.End{}
	for _, trial := range p.groups[0].trials {
		ends[trial.at.String()] = engine.End{Address: trial.at.String(), Entry: entry}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		storeTrial(text)
		storeImage(text)
		var found Findings
		var err error
		var image *imageRecord
		fuzzing.Frugal(t, len(text), func() {
			found, err = p.judge(&p.Spec.Compares[0], ends)
			image, _ = readImage(entry)
			TrialSummary(text)
			ImageSummary(text)
		})
		var rec trialRecord
		if unread := json.Unmarshal(text, &rec) != nil; (err != nil) != unread {
			t.Fatalf("unreadable: %t, and %v", unread, err)
		}
		if err == nil {
			sound(t, found)
			again(t, &rec, &trialRecord{})
		}
		if image != nil {
			again(t, image, &imageRecord{})
		}
	})
}

// again fails unless what was read is written as it would be read once more.
func again(t *testing.T, read, back any) {
	t.Helper()
	text, err := json.Marshal(read)
	if err != nil {
		t.Fatalf("%+v: %v", read, err)
	}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if once, err := json.Marshal(back); err != nil || !bytes.Equal(once, text) {
		t.Fatalf("%s was read, and written as %s: %v", text, once, err)
	}
}

// layout is where an image keeps its packages.
var layout = python{purelib: "/lib/pure", platlib: "/lib/plat", scripts: "/bin", data: "/usr", headers: "/include"}

// A wheel with any names and any contents, listed as it should be: it is refused, or nothing of it is unpacked elsewhere
// than where wheels go, and what is there afterwards proves to be the wheel.
func FuzzInstall(f *testing.F) {
	f.Add("pkg/a.py\npkg-1.data/scripts/run\npkg-1.data/data/share/x", "root-is-purelib: true", "text")
	f.Add("../a\n/etc/passwd\npkg-1.data/data/../../etc/passwd\npkg-1.data/scripts/..", "", "")
	f.Add("a\\..\\b\npkg-1.data/purelib/a\x00b\npkg-1.data/headers/.", "Root-Is-Purelib:true", "\x00")
	name := filepath.Join(f.TempDir(), "pkg-1-py3-none-any.whl")
	store := fuzzing.Place(f, name)
	f.Fuzz(func(t *testing.T, names, kind, content string) {
		data, ok := listedWheel(names, kind, content)
		if !ok {
			return
		}
		store(data)
		fuzzing.Frugal(t, len(data), func() {
			wheels, err := openWheels([]wheelIn{{host: name}})
			if err != nil {
				return
			}
			defer closeWheels(wheels)
			text, err := io.ReadAll(unpacked(wheels, layout))
			if err != nil {
				t.Fatal(err)
			}
			staysInside(t, text)
			want, found := map[string]overlay.WheelFile{}, map[string]string{}
			for _, file := range wheels[0].Files {
				if at := layout.place(wheels[0], file); at != "" {
					want[at] = file
				}
			}
			if err := digests(bytes.NewReader(text), "/", want, found); err != nil {
				t.Fatal(err)
			}
			for at, file := range want {
				if found[at] != file.SHA256 {
					t.Fatalf("%s is %q, and the wheel has %s", at, found[at], file.SHA256)
				}
			}
		})
	})
}

// listedWheel packs a wheel with a file of each name, a line each, and a RECORD that is right.
func listedWheel(names, kind, content string) ([]byte, bool) {
	const info = "pkg-1.dist-info/"
	files := map[string]string{info + "METADATA": "Name: pkg\nVersion: 1\n", info + "WHEEL": kind + "\n"}
	for name := range strings.SplitSeq(names, "\n") {
		files[name] = content
	}
	var out, record bytes.Buffer
	z, rows := zip.NewWriter(&out), csv.NewWriter(&record)
	add := func(name, content string) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		return err
	}
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256([]byte(files[name]))
		err = errors.Join(err, add(name, files[name]), rows.Write([]string{name, "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(files[name]))}))
	}
	rows.Flush()
	err = errors.Join(err, add(info+"RECORD", record.String()), z.Close())
	return out.Bytes(), err == nil
}

// staysInside fails when a tar has anything but files where wheels go.
func staysInside(t *testing.T, text []byte) {
	t.Helper()
	places := []string{layout.purelib, layout.platlib, layout.scripts, layout.data}
	in := tar.NewReader(bytes.NewReader(text))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		inside := slices.ContainsFunc(places, func(dir string) bool { return strings.HasPrefix(path.Join("/", h.Name), dir+"/") })
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) || !inside {
			t.Fatalf("%q of type %c is unpacked", h.Name, h.Typeflag)
		}
	}
}

// What an engine sends of a container's files is a tar with whatever the container has. Only what is wanted of it is read,
// and no file can pass for another one.
func FuzzProof(f *testing.F) {
	want := map[string]overlay.WheelFile{
		"/lib/pkg/a.py": {Size: 4, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("text")))}, "/lib/pkg.dist-info/RECORD": {Size: 1}, "/etc/x": {Size: 4},
	}
	pack := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			h.Typeflag, h.Size, h.Mode = tar.TypeReg, 4, 0o644
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, "text"); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(pack(&tar.Header{Name: "pkg/a.py"}, &tar.Header{Name: "pkg.dist-info/RECORD"}))
	f.Add(pack(&tar.Header{Name: "../etc/x"}, &tar.Header{Name: "/etc/x"}, &tar.Header{Name: "pkg/../pkg/a.py", PAXRecords: map[string]string{"BG.x": "y"}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		found := map[string]string{}
		fuzzing.Frugal(t, len(data), func() {
			if digests(bytes.NewReader(data), "/lib", want, found) != nil {
				return
			}
		})
		for at, sum := range found {
			if _, wanted := want[at]; !wanted || at == "/etc/x" {
				t.Fatalf("%s was taken from below /lib", at)
			}
			if sum == want[at].SHA256 && !bytes.Contains(data, []byte("text")) {
				t.Fatalf("%s has passed for another file", at)
			}
		}
		once := map[string]string{}
		if digests(bytes.NewReader(data), "/lib", want, once) == nil && !maps.Equal(once, found) {
			t.Fatalf("%v, and then %v", found, once)
		}
	})
}

// A file may say that it is larger than anybody can read.
func TestOnlyWhatHasTheRightSizeIsReadOfAContainer(t *testing.T) {
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a.py", Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err := digests(&b, "/lib", map[string]overlay.WheelFile{"/lib/a.py": {Size: 1}}, found)
	if !errors.Is(err, io.ErrUnexpectedEOF) || found["/lib/a.py"] != "of another size" {
		t.Errorf("%v, %v", found, err)
	}
}
