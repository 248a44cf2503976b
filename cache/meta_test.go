package cache

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// An entry without a transcript has the same log line as in versions that kept no transcripts.
func TestAnEntryWithoutATranscript(t *testing.T) {
	text, err := EncodeMeta(Meta{Key: Describe("a").Key(), Log: "l", Created: time.Unix(1, 0).UTC()})
	if err != nil || !bytes.Contains(text, []byte("\nlog \"l\"\ncreated")) {
		t.Fatalf("%v\n%s", err, text)
	}
	if m, err := DecodeMeta(text); err != nil || m.Log != "l" || m.Transcript != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A meta file that could not be read is not written.
func TestAMetaFileIsNotTooLong(t *testing.T) {
	m := Meta{Key: Describe("a").Key(), Text: strings.Repeat("x", LongestMeta)}
	if text, err := EncodeMeta(m); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func FuzzMeta(f *testing.F) {
	meta := Meta{Key: Describe("a").Key(), Text: Describe("a").Text(), Address: "a",
		Log: "l", Transcript: `{"steps":[]}`, Created: time.Unix(1, 0).UTC(),
		Files: []File{
			{Path: "a\xff", Mode: ModePlain, Size: 1, SHA256: fmt.Sprintf("%064x", 1)},
			{Path: "b", Mode: ModeExecutable, SHA256: fmt.Sprintf("%064x", 2)},
			{Path: "c/d", Mode: ModePlain, Link: "../b"}}}
	text, err := EncodeMeta(meta)
	if err != nil {
		f.Fatal(err)
	}
	_, body, _ := bytes.Cut(text, []byte("\n"))
	f.Add(body)
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var meta Meta
		var err error
		fuzzing.Frugal(t, len(body), func() { meta, err = DecodeMeta(seal(metaMagic, body)) })
		if err != nil {
			return
		}
		for _, file := range meta.Files {
			if !filepath.IsLocal(file.Path) {
				t.Fatalf("%q leads out of the entry", file.Path)
			}
		}
		text, err := EncodeMeta(meta)
		if err != nil {
			return // a time that cannot be written
		}
		again, err := DecodeMeta(text)
		diff := cmp.Diff(meta, again, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Meta{}))
		if err != nil || diff != "" {
			t.Fatalf("not read as it was written: %v\n%s", err, diff)
		}
	})
}
