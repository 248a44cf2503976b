package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/internal/sshkey"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

// readable is a bucket that can only be read.
type readable struct{ bucket.Bucket }

func (readable) Replace(context.Context, string, io.ReaderAt, int64) error { return bucket.ErrDenied }

// A worker looks whether it can leave an outcome before it measures. The look leaves nothing, and does not touch the
// outcome of another job of the node. Lent credentials can write.
func TestAWorkerCanWrite(t *testing.T) {
	own := &remote.Request{Owner: "0a1b2c3d", Address: "trial.x", Key: cache.Key{1}}
	lent := *own
	lent.Login = &bucket.Login{}
	b := bucket.NewDirectory(t.TempDir())
	err := own.Leave(t.Context(), b, sshkey.Keys{}, remote.Outcome{Job: "7"})
	var names []string
	for range 2 {
		if err = errors.Join(err, worker.Writable(t.Context(), own, b)); err != nil {
			t.Fatal(err)
		}
		for o, err := range b.List(t.Context(), "") {
			names = append(names, fmt.Sprint(o.Name, o.Size, err))
		}
	}
	if len(names) != 2 || names[0] != names[1] {
		t.Errorf("the outcome of another job, and what is beside it: %q", names)
	}
	if err := worker.Writable(t.Context(), own, readable{b}); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("a bucket that can only be read: %v", err)
	}
	if err := worker.Writable(t.Context(), &lent, readable{b}); err != nil {
		t.Errorf("with lent credentials: %v", err)
	}
}
