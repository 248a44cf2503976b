package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

// A request is gone when its job runs. A request that waited in the directory of jobs can be read only with the
// encryption key of its job, and only unchanged.
func TestARequestIsTaken(t *testing.T) {
	r := remote.Request{Project: remote.Project{Dir: "/project"}, Owner: "o", Address: "trial.x", Key: cache.Key{1},
		Snapshot: cache.Key{2}, Login: &bucket.Login{Secret: "lent"}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, key := job.Encrypt(text)
	_, other := job.Encrypt(text)
	for name, of := range map[string]struct {
		text  []byte
		key   string
		wrong string // begins the error
	}{
		"plain":        {text, "", ""},
		"encrypted":    {encrypted, key, ""},
		"of another":   {encrypted, other, "the file is not as it was when the job was submitted"},
		"no key":       {encrypted, "", "invalid character"},
		"broken key":   {encrypted, "?", "BENCHGRAPH_REQUEST_KEY: "},
		"exchanged":    {text, key, "the file is not as it was when the job was submitted"},
		"cut":          {encrypted[:5], key, "the file is not as it was when the job was submitted"},
		"a second run": {nil, key, "open "},
	} {
		path := filepath.Join(t.TempDir(), "request")
		if of.text != nil {
			if err := os.WriteFile(path, of.text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := worker.TakeRequest(path, of.key)
		if of.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), of.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Address != r.Address || got.Login.Secret != "lent" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the request is left", name)
		}
	}
	if strings.Contains(string(encrypted), "trial.x") {
		t.Error("the request is not encrypted")
	}
}

// The files of jobs are together in a directory that only this user can write to, even if somebody else has made a
// directory of its name before.
func TestTheFilesOfJobsAreTogether(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	makes := func(above string) {
		t.Helper()
		dir, err := worker.NewJobDir()
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.Dir(dir.Path); got != above {
			t.Errorf("a job has its files in %s, want %s", got, above)
		}
		if err := dir.Remove(); err != nil {
			t.Error(err)
		}
	}
	jobs := filepath.Join(temporary, fmt.Sprint("benchgraph-jobs-", os.Getuid()))
	makes(jobs)
	makes(jobs)
	if err := os.Chmod(jobs, 0o777); err != nil {
		t.Fatal(err)
	}
	makes(temporary)
	store := filepath.Join(temporary, fmt.Sprint("benchgraph-store-", os.Getuid()))
	if err := errors.Join(os.Mkdir(store, 0o700), os.Chmod(store, 0o777)); err != nil {
		t.Fatal(err)
	}
	warning := ""
	note := func(format string, args ...any) { warning += fmt.Sprintf(format, args...) }
	own, images, err := worker.StoreDirs("", "/job", &remote.Request{}, note)
	if err != nil || own != "/job/store" || images != own || !strings.Contains(warning, "others can write to it") ||
		!strings.Contains(warning, "BENCHGRAPH_CACHE_DIR") {
		t.Errorf("a store to which others can write: %q, %q, %v, with the warning %q", own, images, err, warning)
	}
}

// A request that another user has put there is not run.
func TestARequestOfSomebodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "request")
	r := remote.Request{Project: remote.Project{Dir: "/project"}, Owner: "o", Address: "trial.x", Key: cache.Key{1},
		Snapshot: cache.Key{2}}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.TakeRequest(path, ""); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("%v", err)
	}
}
