package jobtest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// printing is a line of a script: it prints the request, with the encryption key if there is one, and removes it.
const printing = `echo "request $(base64 -w0 "$BENCHGRAPH_REQUEST") $BENCHGRAPH_REQUEST_KEY"; rm "$BENCHGRAPH_REQUEST"
`

// printedRequest matches the line that printing prints.
var printedRequest = regexp.MustCompile(`(?m)^request (\S+) (\S*)$`)

// checkRequest fails the story unless exactly one job of the key has printed the request. text is the output of these
// jobs. It returns the encryption key.
func (s *story) checkRequest(text string, request []byte) (key string) {
	s.Helper()
	all := printedRequest.FindAllStringSubmatch(text, -1)
	if len(all) != 1 {
		s.Fatalf("%d jobs took a request: %s", len(all), printable.Clip(text, 1000))
	}
	got, err := base64.StdEncoding.DecodeString(all[0][1])
	if key = all[0][2]; err == nil && key != "" {
		got, err = job.Decrypt(got, key)
	}
	if err != nil || !bytes.Equal(got, request) {
		s.Errorf("the request has %d bytes that are not the %d of the job: %v", len(got), len(request), err)
	}
	return key
}

// A request of several parts arrives unchanged in a directory that only the user can open; the file is encrypted, or
// only the user can read it. Variables arrive unchanged, whatever they contain, and the job has no others. After the
// job has removed its request, there is no second copy.
func (s *story) request() {
	j := s.job(`ls -ld "${BENCHGRAPH_REQUEST%/*}" | cut -c1-10; ls -l "$BENCHGRAPH_REQUEST" | cut -c1-10
exec sh -c '` + printing + `find "${BENCHGRAPH_REQUEST%/*}" -name "request*" | wc -l
echo "job $BENCHGRAPH_JOB"
tr "\n\0" "~\n" </proc/$$/environ; true'
`)
	j.Request = make([]byte, 200<<10)
	_, _ = rand.Read(j.Request) // never fails
	j.Environ = append(j.Environ, "A=1,2\nb='\"$c", "EMPTY=", "TOKEN=hidden")
	id := Submit(s, s.client, j)
	text := s.completes(id, "")
	mode := "-rw-------\n"
	if s.checkRequest(text, j.Request) != "" {
		mode = "-rw-"
	}
	head, environ, _ := strings.Cut(text, "\njob "+id.Name()+"\n")
	if !strings.HasPrefix(head, "drwx------\n"+mode) || !strings.HasSuffix(head, "\n0") {
		s.Errorf("others can read the request, or one is left: %.22s … %s", head, head[max(0, len(head)-10):])
	}
	for _, v := range []string{"A=1,2~b='\"$c\n", "EMPTY=\n", "TOKEN=hidden\n"} {
		if !strings.Contains("\n"+environ, "\n"+v) {
			s.Errorf("the job lacks %q", v)
		}
	}
	own := []string{"PATH", "PWD", "A", "EMPTY", "TOKEN", job.RequestVariable, job.RequestKeyVariable, job.NameVariable}
	for line := range strings.Lines(environ) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains(own, name) && !slices.ContainsFunc(s.Adds, func(of string) bool {
			return strings.HasPrefix(line, of)
		}) {
			s.Errorf("the job has %s", printable.Clip(line, 200))
		}
	}
}

// While a job is queued, nobody can read its request and its variables. After the job has taken its request, a client
// that submits it again finds the job and writes no second request.
func (s *story) queuedRequest() {
	s.plays(s.Seen != nil && s.Hold != nil)
	lines, release := s.goes()
	j := s.job(printing + lines + `find "${BENCHGRAPH_REQUEST%/*}" -name "request*" | wc -l`)
	j.Request, j.Environ = []byte("hidden from others\n"), append(j.Environ, "TOKEN=hidden too")
	s.Hold(true)
	id := Submit(s, s.client, j)
	f := s.follow(id)
	f.reaches(job.Pending)
	seen := s.Seen()
	parts, _, err := job.Handed(j.Request, "", 1<<20)
	if err != nil {
		s.Fatal(err)
	}
	s.Hold(false)
	f.reaches(job.Running)
	again := j
	again.Request = []byte("another\n")
	if other, found, err := s.Client().Submit(s.Context(), again); other != id || !found || err != nil {
		s.Errorf("%s: found %v, %v", other, found, err)
	}
	release()
	f.wait()
	text := Printed(s, s.client, id)
	if !strings.HasSuffix(text, "\n0\n") {
		s.Errorf("a request is left: %s", text)
	}
	key := s.checkRequest(text, j.Request)
	for _, secret := range append(slices.Collect(maps.Values(parts)), "hidden", key) {
		if secret != "" && strings.Contains(seen, secret) {
			s.Errorf("others could read %q", secret)
		}
	}
}

// Data beside the queue is removed with the job: automatically or by Forget.
func (s *story) left() {
	if s.Kept == nil {
		s.Skip("the scheduler keeps nothing of a job beside its queue")
	}
	lines, release := s.goes()
	running, ended, forgotten := s.job(lines), s.job("true"), s.job("exit 1")
	running.Project, ended.Project = []byte("of running"), []byte("of ended")
	f := s.follow(Submit(s, s.client, running))
	for _, j := range []job.Job{ended, forgotten} {
		Wait(s, s.client, Submit(s, s.client, j))
	}
	f.reaches(job.Running)
	keeper, keeps := s.client.(job.Keeper)
	if keeps {
		if err := keeper.Forget(s.Context(), forgotten.Key); err != nil {
			s.Error(err)
		}
		given := map[string]string{}
		for _, stays := range []bool{true, false} {
			live, err := keeper.Sweep(s.Context(), func(key string, changed time.Time, project []byte) bool {
				given[key] = string(project)
				if changed.IsZero() {
					s.Errorf("%s was never changed", key)
				}
				return stays
			})
			if err != nil {
				s.Error(err)
			}
			if stays && len(live) > 0 || !stays && (len(live) != 1 || live[0].Key() != running.Key) {
				s.Errorf("stays: %v, and live: %v", stays, live)
			}
			if left := s.Kept(ended.Key); stays == (len(left) == 0) {
				s.Errorf("stays: %v, and left: %v", stays, left)
			}
		}
		if want := map[string]string{running.Key: "of running", ended.Key: "of ended"}; !maps.Equal(given, want) {
			s.Errorf("asked for %v", given)
		}
	}
	for _, j := range []job.Job{ended, forgotten} {
		if left := s.Kept(j.Key); len(left) > 0 {
			s.Errorf("left of a job that has ended: %v", left)
		}
	}
	if left := s.Kept(running.Key); keeps && len(left) == 0 {
		s.Error("nothing is kept of a job that runs")
	}
	release()
	f.wait()
}
