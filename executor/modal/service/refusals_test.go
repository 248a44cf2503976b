package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
	"github.com/benchgraph/benchgraph/executor/modal/modaltest"
)

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

func TestRefusedJobs(t *testing.T) {
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
	if n := len(s.Sandboxes()); n > 0 {
		t.Errorf("%d sandboxes", n)
	}
}

func submitted(t *testing.T, s *site, j job.Job) error {
	t.Helper()
	_, _, err := s.Submit(t.Context(), j)
	return err
}
