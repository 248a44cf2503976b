package logfile_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/logfile"
)

var errStop = errors.New("a signal came")

// A pipe is read once and can be opened twice; a file is opened in its place.
func TestLogsAreOpenedTwice(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, []byte("log"), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(fifo, []byte("log"), 0) }()
	for _, name := range []string{file, fifo, "-"} {
		open, err := logfile.Opener(t.Context(), name, strings.NewReader("log"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			f, err := open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(f)
			if string(text) != "log" || errors.Join(err, f.Close()) != nil {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
}

// A signal ends the wait for a pipe without a writer, and the reading of a file.
func TestReadingEnds(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, []byte("log"), 0o600), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	open, err := logfile.Opener(ctx, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { stop(errStop) })
	if _, err := logfile.Opener(ctx, fifo, nil); !errors.Is(err, errStop) {
		t.Errorf("the wait ended with %v", err)
	}
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadAll(f); !errors.Is(err, errStop) {
		t.Errorf("the reading ended with %v", err)
	}
	// When this writer comes, the goroutine that waits for it ends.
	if w, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
		_ = w.Close()
	}
}
