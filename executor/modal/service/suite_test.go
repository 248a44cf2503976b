package service_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
)

// suite is what holds of any Modal.
func suite(t *testing.T, s *site) {
	for name, script := range map[string]string{
		"0": "echo fine", "3": "exit 3", "124": "exit 124", "137": "kill -KILL $$",
	} {
		t.Run("ends with "+name, func(t *testing.T) {
			t.Parallel()
			end := s.wait(t, s.submit(t, s.job("end."+name, script)))
			want := map[string]job.End{"0": {Status: job.Status{State: job.Completed}},
				"3":   {Status: job.Status{State: job.Failed}, Code: 3},
				"124": {Status: job.Status{State: job.Failed}, Code: 124},
				"137": {Status: job.Status{State: job.Failed}, Signal: 9}}[name]
			if end.State != want.State || end.Code != want.Code || end.Signal != want.Signal || end.Node == "" ||
				end.Started.Before(end.Submitted) || end.Submitted.IsZero() {
				t.Errorf("%+v, want %+v", end, want)
			}
		})
	}
	t.Run("is cancelled", func(t *testing.T) {
		t.Parallel()
		id := s.submit(t, s.job("cancelled", "sleep 600"))
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if end := s.wait(t, id); end.State != "CANCELLED" {
			t.Errorf("%+v", end)
		}
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
	t.Run("is found again", func(t *testing.T) {
		t.Parallel()
		id := s.submit(t, s.job("again", "sleep 600"))
		again, found, err := s.Submit(t.Context(), s.job("again", "sleep 600"))
		if err != nil || !found || again != id {
			t.Errorf("%s, %v, %v; the first was %s", again, found, err, id)
		}
		if again, found, err = s.Find(t.Context(), "key.again"); err != nil || !found || again != id {
			t.Errorf("%s, %v, %v", again, found, err)
		}
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, found, err = s.Find(t.Context(), "key.again"); err != nil || found {
			t.Errorf("found: %v, %v", found, err)
		}
	})
	t.Run("has its request", func(t *testing.T) {
		t.Parallel()
		j := s.job("request", `wc -c <"$BENCHGRAPH_REQUEST"
tail -c 5 "$BENCHGRAPH_REQUEST"; ls -l "$BENCHGRAPH_REQUEST"
echo "$BENCHGRAPH_JOB|$A|$(env | grep -c PART_)"; echo wrong >&2`)
		j.Request = []byte(strings.Repeat("\x00a request\n", 1<<16) + "last\n")
		j.Environ = append(j.Environ, "A=1,2\n'\"$c")
		id := s.submit(t, j)
		if end := s.wait(t, id); end.State != job.Completed {
			t.Errorf("%+v", end)
		}
		text := s.printed(t, id)
		for _, part := range []string{"720901\nlast\n", "-rw------- ", id.Name() + "|1,2\n'\"$c|0\n", "wrong\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q lacks %q", text, part)
			}
		}
	})
}

func TestJobs(t *testing.T) {
	t.Parallel()
	suite(t, newSite(t, nil))
}

// TestModalItself runs the suite on Modal, where there is an account. It costs some minutes of a CPU.
func TestModalItself(t *testing.T) {
	t.Parallel()
	id, secret, image := os.Getenv("MODAL_TOKEN_ID"), os.Getenv("MODAL_TOKEN_SECRET"),
		os.Getenv("BENCHGRAPH_TEST_MODAL_IMAGE")
	if id == "" || secret == "" || image == "" {
		t.Skip("there is no account of Modal: MODAL_TOKEN_ID, MODAL_TOKEN_SECRET and BENCHGRAPH_TEST_MODAL_IMAGE, " +
			"the digest of an image with sh, base64 and gzip, are not all set")
	}
	s := &site{}
	var err error
	s.Service, err = open(t, []string{"MODAL_TOKEN_ID=" + id, "MODAL_TOKEN_SECRET=" + secret},
		modal.Asks{App: "benchgraph-test", Image: image}, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	suite(t, s)
}

func TestWhyModalCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	asks := modal.Asks{App: "bench", Image: image}
	with := func(change func(*modal.Asks)) modal.Asks {
		a := asks
		change(&a)
		return a
	}
	for _, c := range []struct {
		environ []string
		asks    modal.Asks
		want    string
	}{
		{[]string{"MODAL_TOKEN_ID=", "MODAL_TOKEN_SECRET="}, asks, "there is no token; set MODAL_TOKEN_ID and"},
		{[]string{"MODAL_TOKEN_SECRET=other"}, asks, "Modal does not take the token: Token ID and secret"},
		{nil, with(func(a *modal.Asks) { a.Secrets = []string{"gone"} }), "secret gone: "},
		{nil, with(func(a *modal.Asks) { a.ImageSecret = "gone" }), "image_secret gone: "},
		{nil, with(func(a *modal.Asks) { a.Volumes = map[string]string{"/m": "gone"} }), "volume gone: "},
	} {
		_, err := open(t, append(s.Environ(), c.environ...), c.asks, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "modal: "+c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestWhatModalRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	many := s.job("many", "true")
	many.GPUs = 9
	missing := newSite(t, func(_ *modaltest.Server, a *modal.Asks) { a.Image = "missing" + image; a.GPU = "" })
	gpu := s.job("gpu", "true")
	gpu.GPUs = 1
	for want, err := range map[string]error{
		"GPU count must be at most 8":       submitted(t, s, many),
		"manifest unknown":                  submitted(t, missing, s.job("a", "true")),
		"needs GPUs, and the executor name": submitted(t, missing, gpu),
	} {
		refused, ok := errors.AsType[*job.Refused](err)
		if !ok || !strings.Contains(refused.Words, want) || strings.Contains(refused.Words, "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, _, err := s.Submit(t.Context(), job.Job{Key: "a b"}); err == nil || len(s.Sandboxes()) > 0 {
		t.Errorf("%v, and %d sandboxes", err, len(s.Sandboxes()))
	}
}

func submitted(t *testing.T, s *site, j job.Job) error {
	t.Helper()
	_, _, err := s.Submit(t.Context(), j)
	return err
}
