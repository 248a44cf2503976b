package container

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/distribution/reference"

	"github.com/benchgraph/benchgraph/container/login"
	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// Messages of an engine are read to their end or to the first error, whatever their content.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"status":"Downloading","id":"a","progressDetail":{"current":1,"total":2}}` + "\r\n" +
		`{"stream":"Step 1/2 : RUN x\n"}` + "\n" + `{"errorDetail":{"code":3,"message":"m"},"error":"m"}`))
	f.Add([]byte(`{"id":"moby.buildkit.trace","aux":"CnkKR3NoYTI1NjplOGM2MTNlMDdiMGI3ZmYzMzg5M2I2OTRmNzc1OWExMGQ0MmUxODBmMmI0ZGMzNDlmYjU3ZGM2YjcxZGNhYjAwGhJleHBvcnRpbmcgdG8gaW1hZ2UqDAjOqYfYBhDXtID7ATIMCM6ph9gGEI/2vZsCEsoBClV3cml0aW5nIGltYWdlIA=="}`))
	f.Add([]byte(`{"id":"moby.image.id","aux":{"ID":"sha256:5"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzing.Frugal(t, len(text), func() {
			var log bytes.Buffer
			b := &building{log: &log, names: map[string]string{}}
			w := &pulling{report: func(Progress) {}, has: map[string]int64{}, seen: map[string]bool{}}
			_ = messages(bytes.NewReader(text), func(m message) {
				b.hear(m)
				w.hear(m)
			})
			if log.Len() > 2*len(text) {
				t.Fatalf("%d bytes of log from %d bytes", log.Len(), len(text))
			}
		})
	})
}

// An engine's message tells why a transfer failed. Its own store may lack what the registry has: another attempt helps.
func TestRefusalsOfTransfers(t *testing.T) {
	t.Parallel()
	ref, err := reference.ParseNormalizedNamed("registry.example/app:1")
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]registry.Reason{
		"manifest unknown: manifest unknown":                                                      registry.Missing,
		`failed to resolve reference "registry.example/app:1": registry.example/app:1: not found`: registry.Missing,
		"failed to check image sha256:0c: rpc error: code = NotFound desc = content digest sha256:0c: " +
			"not found": registry.Failing,
		"toomanyrequests: too many": registry.Throttled,
	} {
		err := explainTransfer(ref, login.Login{}, &EngineError{Message: message})
		if got, ok := errors.AsType[*registry.Error](err); !ok || got.Reason != want {
			t.Errorf("%s: %v, want %s", message, err, want)
		}
	}
}

// Other engines have other builders, and report builds as engines did before BuildKit.
func TestStepsOfOtherBuilders(t *testing.T) {
	t.Parallel()
	told := `{"stream":"Step 1/2 : FROM busybox\n"}
{"stream":" ---> 87de3b7d16b0\n"}
{"stream":"Step 2/2 : RUN exit 3\n"}
{"errorDetail":{"code":3,"message":"The command '/bin/sh -c exit 3' returned a non-zero code: 3"},"error":"The command '/bin/sh -c exit 3' returned a non-zero code: 3"}
`
	var log bytes.Buffer
	b := &building{log: &log, names: map[string]string{}}
	said, ok := errors.AsType[*EngineError](messages(strings.NewReader(told), b.hear))
	if !ok {
		t.Fatal("no error")
	}
	failed, ok := errors.AsType[*StepError](b.failure(said))
	if !ok || failed.Step != "2/2 : RUN exit 3" || failed.Code != 3 {
		t.Errorf("%+v", failed)
	}
	if want := "Step 1/2 : FROM busybox\n ---> 87de3b7d16b0\nStep 2/2 : RUN exit 3\n"; log.String() != want {
		t.Error(log.String())
	}
	b = &building{log: &log, names: map[string]string{}}
	if err := messages(strings.NewReader(`{"aux":{"ID":"sha256:12"}}`), b.hear); err != nil || b.id != "sha256:12" {
		t.Error(err, b.id)
	}
}
