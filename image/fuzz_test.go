package image

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/internal/fuzzing"
)

// The record of an image is read from the store, where it may come from anybody.
func FuzzImageRecord(f *testing.F) {
	f.Add([]byte(`{"id": "sha256:00", "size": -1, "steps": [{"what": "a\nb", "versions": ["\u001b[2J"]}], ` +
		`"packages": [{"name": "a", "info": "/x/y"}]}`))
	dir := f.TempDir()
	entry, store := cache.Entry{Dir: dir}, fuzzing.Place(f, filepath.Join(dir, File))
	f.Fuzz(func(t *testing.T, text []byte) {
		store(text)
		var image *Record
		var err error
		fuzzing.Frugal(t, len(text), func() {
			image, err = Read(entry)
			Summary(text)
		})
		var rec Record
		if unread := json.Unmarshal(text, &rec) != nil || rec.ID == ""; (err != nil) != unread {
			t.Fatalf("unreadable: %t, and %v", unread, err)
		}
		if image != nil {
			again(t, image, &Record{})
		}
	})
}

// again fails unless a value survives writing and reading.
func again(t *testing.T, read, back any) {
	t.Helper()
	text, err := json.Marshal(read)
	if err != nil {
		t.Fatalf("%+v: %v", read, err)
	}
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if once, err := json.Marshal(back); err != nil || !bytes.Equal(once, text) {
		t.Fatalf("%s was read, and written as %s: %v", text, once, err)
	}
}
