package worker_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/remote"
	"github.com/benchgraph/benchgraph/remote/worker"
)

// readable is a bucket that can only be read.
type readable struct{ bucket.Bucket }

func (readable) Replace(context.Context, string, io.ReaderAt, int64) error { return bucket.ErrDenied }

// A worker looks whether it can leave an outcome before it measures, and leaves nothing by that. Credentials that were
// lent can write.
func TestAWorkerCanWrite(t *testing.T) {
	own := &remote.Request{Owner: "0a1b2c3d", Address: "trial.x", Key: cache.Key{1}}
	lent := *own
	lent.Login = &bucket.Login{}
	b := bucket.NewDirectory(t.TempDir())
	if err := worker.Writable(t.Context(), own, b); err != nil {
		t.Error(err)
	}
	for o, err := range b.List(t.Context(), "") {
		t.Errorf("left: %v, %v", o, err)
	}
	if err := worker.Writable(t.Context(), own, readable{b}); !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("a bucket that can only be read: %v", err)
	}
	if err := worker.Writable(t.Context(), &lent, readable{b}); err != nil {
		t.Errorf("with lent credentials: %v", err)
	}
}
