package bucket_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/cache/shared/bucket/buckettest"
)

// Lent credentials can read everything below the prefix of the bucket and write the named objects, and nothing else.
func TestLentCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.User)
	t.Setenv("AWS_SECRET_ACCESS_KEY", buckettest.Secret)
	endpoint := buckettest.Start(t, "127.0.0.1")
	ctx := context.Background()
	open := func(prefix string, login *bucket.Login) bucket.Bucket {
		b, err := bucket.Open(bucket.Place{URL: "s3://" + buckettest.Bucket + prefix, Endpoint: endpoint, Login: login})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(b bucket.Bucket, name string, size int) error {
		return b.Replace(ctx, name, strings.NewReader(strings.Repeat("x", size)), int64(size))
	}
	own, beside := open("/results", nil), open("/results-of-others", nil)
	for _, name := range []string{"entries/aa", "entries/bb", "index/1"} {
		if err := errors.Join(put(own, name, 1), put(beside, name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	lender, ok := own.(bucket.Lender)
	if !ok {
		t.Fatal("the bucket lends nothing")
	}
	login, err := lender.Lend(ctx, bucket.Loan{Role: "arn:minio:iam:::role/jobs", Name: "benchgraph-x",
		For: 15 * time.Minute, Writes: []string{"entries/cc", "jobs/o/cc.json"}})
	if err != nil {
		t.Fatal(err)
	}
	if login.Key == buckettest.User || login.Session == "" {
		t.Error("the credentials are those of the lender")
	}
	sessionless := bucket.Login{Key: login.Key, Secret: login.Secret}
	lent, outside := open("/results", &login), open("/results-of-others", &login)
	may := map[string]error{
		"write its entry":   lent.Create(ctx, "entries/cc", strings.NewReader("x"), 1),
		"replace its entry": put(lent, "entries/cc", 40<<20), // in parts
		"leave its outcome": put(lent, "jobs/o/cc.json", 1),
		"read an entry":     read(ctx, lent, "entries/aa"),
		"list the index":    list(ctx, lent, "index/"),
	}
	for what, err := range may {
		if err != nil {
			t.Errorf("it may not %s: %v", what, err)
		}
	}
	mayNot := map[string]error{
		"replace an entry":        put(lent, "entries/aa", 1),
		"make another entry":      lent.Create(ctx, "entries/dd", strings.NewReader("x"), 1),
		"forge another outcome":   put(lent, "jobs/o/aa.json", 1),
		"write the index":         put(lent, "index/2", 1),
		"remove an entry":         lent.Remove(ctx, []string{"entries/aa"}),
		"remove its entry":        lent.Remove(ctx, []string{"entries/cc"}),
		"read beside the place":   read(ctx, outside, "entries/aa"),
		"list beside the place":   list(ctx, outside, ""),
		"list the bucket":         list(ctx, open("", &login), ""),
		"write beside the place":  put(outside, "entries/cc", 1),
		"act without its session": read(ctx, open("/results", &sessionless), "entries/aa"),
	}
	for what, err := range mayNot {
		if !errors.Is(err, bucket.ErrDenied) {
			t.Errorf("it may %s: %v", what, err)
		}
	}
}

func read(ctx context.Context, b bucket.Bucket, name string) error {
	body, err := b.Open(ctx, name)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

func list(ctx context.Context, b bucket.Bucket, prefix string) error {
	for _, err := range b.List(ctx, prefix) {
		if err != nil {
			return err
		}
	}
	return nil
}

// A server that does not lend gives an error.
func TestAServerThatLendsNothing(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-team")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	b, err := bucket.Open(bucket.Place{URL: "s3://team/results", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	loan := bucket.Loan{Role: "arn:aws:iam::123456789012:role/jobs", Name: "x", For: time.Hour}
	_, err = b.(bucket.Lender).Lend(context.Background(), loan)
	if err == nil || !strings.Contains(err.Error(), "AssumeRole at "+server.URL) ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	if _, err = b.(bucket.Lender).Lend(ended, loan); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
