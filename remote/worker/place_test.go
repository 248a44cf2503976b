package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

// A request that nobody reads again is gone when its job runs; one in the directory of jobs stays, without what was
// lent.
func TestARequestIsTaken(t *testing.T) {
	work := t.TempDir()
	for path, stays := range map[string]bool{filepath.Join(t.TempDir(), "request"): false,
		filepath.Join(work, "key.job", "request"): true} {
		r := remote.Request{Project: remote.Project{Dir: "/project", WorkDir: work}, Owner: "o", Address: "trial.x",
			Key: cache.Key{1}, Snapshot: cache.Key{2}, Login: &bucket.Login{Secret: "lent"}}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := worker.TakeRequest(path)
		if err != nil || got.Address != r.Address || got.Login.Secret != "lent" {
			t.Fatalf("%+v, %v", got, err)
		}
		left, err := os.ReadFile(path)
		if err == nil != stays || strings.Contains(string(left), "lent") {
			t.Errorf("%s stays: %v; it has %s", path, !stays, left)
		}
		if again, err := remote.ReadRequest(path); stays && (err != nil || again.Key != r.Key) {
			t.Errorf("what stays cannot be read: %v", err)
		}
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
	if _, err := worker.TakeRequest(path); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("%v", err)
	}
}
