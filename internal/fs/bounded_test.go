package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadAllHasABound(t *testing.T) {
	for text, want := range map[string]string{"": "", "1234": "", "12345": "over 4 bytes"} {
		got, err := ReadAll(strings.NewReader(text), 4)
		tooLong, _ := errors.AsType[*TooLong](err)
		if want == "" && (err != nil || string(got) != text) ||
			want != "" && (got != nil || tooLong == nil || err.Error() != want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got := (&TooLong{64 << 20}).Error(); got != "over 64 MiB" {
		t.Error(got)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(name, []byte("1234"), 0o644), os.Symlink("file", link),
		unix.Mkfifo(pipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(link, 4); string(got) != "1234" || err != nil {
		t.Errorf("through a link: %q, %v", got, err)
	}
	if _, err := ReadFile(name, 3); err == nil || err.Error() != name+": over 3 bytes" {
		t.Error(err)
	}
	for _, irregular := range []string{dir, pipe} {
		if _, err := ReadFile(irregular, 4); !errors.Is(err, ErrIrregular) {
			t.Errorf("%s: %v", irregular, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 4); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
