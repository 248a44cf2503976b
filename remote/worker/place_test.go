package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

// A request that nobody reads again is gone when its job runs; one in the directory of jobs stays.
func TestARequestIsTaken(t *testing.T) {
	work := t.TempDir()
	for path, stays := range map[string]bool{filepath.Join(t.TempDir(), "request"): false,
		filepath.Join(work, "key.job", "request"): true} {
		r := remote.Request{Project: remote.Project{Dir: "/project", WorkDir: work}, Owner: "o", Address: "trial.x",
			Key: cache.Key{1}, Snapshot: cache.Key{2}}
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
		if got, err := worker.TakeRequest(path); err != nil || got.Address != r.Address {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, err := os.Stat(path); err == nil != stays {
			t.Errorf("%s stays: %v", path, !stays)
		}
	}
}
