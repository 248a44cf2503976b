package bucket_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
)

// The error for a store that cannot be used gives the reason in one sentence without the request, with a remedy.
func TestProbe(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("team"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server())
	defer server.Close()
	says := func(status int, code string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>It is so.</Message></Error>", code)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, of := range map[string]struct{ url, endpoint, want, remedy string }{
		"usable":    {"s3://team/a", server.URL, "", ""},
		"directory": {"file://" + t.TempDir() + "/new", "", "", ""},
		"no bucket": {"s3://taem/a", server.URL, "there is no such bucket", "Make the bucket"},
		"no right":  {"s3://team/a", says(403, "AccessDenied"), "access denied: It is so", "Set AWS_ACCESS_KEY_ID"},
		"expired":   {"s3://team/a", says(400, "ExpiredToken"), "access denied: It is so", "Set AWS_ACCESS_KEY_ID"},
		"its clock": {"s3://team/a", says(403, "RequestTimeTooSkewed"), "the clock of this machine is",
			"Set the clock"},
		"no room":   {"s3://team/a", says(507, "XMinioStorageFull"), "the store is full: It is so", "Give the store"},
		"quota":     {"s3://team/a", says(403, "QuotaExceeded"), "the store is full: It is so", "Give the store"},
		"MinIO's":   {"s3://team/a", says(400, "XMinioAdminBucketQuotaExceeded"), "the store is full", "Give the"},
		"too large": {"s3://team/a", says(400, "EntityTooLarge"), "jobs/o/probe: the object is too", "Raise the limit"},
		"a proxy":   {"s3://team/a", says(413, ""), "jobs/o/probe: the object is too", "Raise the limit"},
		"no server": {"s3://team/a", gone.URL, gone.URL + " does not answer: dial tcp ", "Correct url"},
		"no place":  {"file:///proc/nope", "", "mkdir /proc/nope", "Correct url"},
		"no mount":  {"file:///nope/nope", "", "directory /nope/nope is not there, nor", "Correct url"},
	} {
		b, err := bucket.Open(bucket.Place{URL: of.url, Endpoint: of.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		if name == "directory" { // a file beside the directory is no object
			if err := os.WriteFile(strings.TrimPrefix(of.url, "file://")+".beside", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err = bucket.Probe(t.Context(), b, "jobs/o/probe")
		if of.want == "" {
			for o := range b.List(t.Context(), "") {
				t.Errorf("%s: %s is left", name, o.Name)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), of.want) || !strings.HasPrefix(bucket.Remedy(err), of.remedy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
