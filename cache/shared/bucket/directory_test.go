package bucket_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
)

// New directories below one that a group shares give the group the same rights, whatever the umask. A directory that
// only its owner may write to gives no rights, nor does a sticky one.
func TestDirectoryOfAGroup(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for above, want := range map[fs.FileMode]fs.FileMode{
		0o775 | fs.ModeSetgid: 0o775 | fs.ModeSetgid,
		0o770:                 0o775,
		0o755:                 0o755,
		0o777 | fs.ModeSticky: 0o755,
	} {
		top := filepath.Join(t.TempDir(), "top")
		if err := os.Mkdir(top, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(top, above); err != nil {
			t.Fatal(err)
		}
		b := bucket.NewDirectory(filepath.Join(top, "store"))
		if err := b.Create(t.Context(), "entries/ab/x", strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"store", "store/entries", "store/entries/ab"} {
			info, err := os.Stat(filepath.Join(top, dir))
			if err != nil || info.Mode()&^fs.ModeDir != want {
				t.Errorf("%s below %v: %v, %v; want %v", dir, above, info.Mode(), err, want)
			}
		}
	}
}
