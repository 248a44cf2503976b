package wheel

import (
	"crypto/sha1" //nolint:gosec // by which git names the content of files
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/glob"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Refusal is the error for a wheel that was not built from a revision, with the evidence.
type Refusal struct{ Evidence string }

func (e *Refusal) Error() string { return e.Evidence }

// maxVersionFile limits the files in which builds write their version.
const maxVersionFile = 64 << 10

// localHash matches the hash of a commit in a version, as setuptools-scm, versioneer and others write it:
// 1.2.dev3+g0123abc.
var localHash = lazyregexp.New(`\+(?:[0-9A-Za-z]+[._-])*g([0-9a-f]{7,40})\b`)

// wholeHash matches the hash of a commit in a file that a build wrote.
var wholeHash = lazyregexp.New(`\b[0-9a-f]{40}\b`)

// Prove compares a wheel with the tree of a revision (40 digits). blobs are git's IDs of the regular files of the
// tree, by path. Each file of the wheel that exists in the tree at the same path, perhaps under src/ or python/, must
// have the same content, and a hash in the version must be the revision's. Prove returns the number of compared
// files. For a wheel of another revision, or a file that is no wheel, it returns *Refusal.
func Prove(name, rev string, blobs map[string]string) (int, error) {
	w, err := Open(name)
	if err != nil {
		return 0, &Refusal{err.Error()}
	}
	defer w.Close()
	if hash := localHash().FindStringSubmatch(w.Version); hash != nil && !strings.HasPrefix(rev, hash[1]) {
		return 0, &Refusal{fmt.Sprintf("its version is %s, so it was built from %s", w.Version, hash[1])}
	}
	compared := 0
	var other []string
	for _, f := range w.Files {
		if !strings.HasSuffix(f.Scheme, "lib") || strings.HasPrefix(f.Name, w.Info+"/") {
			continue
		}
		wanted := wantedBlobs(f.Path, blobs)
		if len(wanted) == 0 {
			if err := w.checkVersionFile(f, rev); err != nil {
				return compared, err
			}
			continue
		}
		id, err := f.blob()
		if err != nil {
			return compared, err
		}
		compared++
		if !slices.Contains(wanted, id) {
			other = append(other, f.Path)
		}
	}
	if len(other) == 0 {
		return compared, nil
	}
	text := fmt.Sprintf("%s is not that of %s", other[0], rev[:12])
	if len(other) > 1 {
		text += fmt.Sprintf(", nor are %d more of %d files", len(other)-1, compared)
	}
	return compared, &Refusal{text}
}

// wantedBlobs returns the IDs of the tree's files at the possible paths of a wheel's file.
func wantedBlobs(name string, blobs map[string]string) []string {
	var ids []string
	for _, prefix := range prefixes {
		if id, ok := blobs[prefix+name]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// blob returns git's ID of the file's content.
func (f File) blob() (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum := sha1.New() //nolint:gosec // as above
	fmt.Fprintf(sum, "blob %d\x00", f.Size)
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkVersionFile checks the hash in f, if f is a generated version file with a hash.
func (w *Wheel) checkVersionFile(f File, rev string) error {
	base := path.Base(f.Path)
	if base != "_version.py" && base != "version.py" && base != "commit_id.py" || f.Size > maxVersionFile {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := fs.ReadAll(r, maxVersionFile)
	if err != nil {
		return err
	}
	found := ""
	if hash := localHash().FindSubmatch(text); hash != nil {
		found = string(hash[1])
	} else if base == "commit_id.py" {
		found = wholeHash().FindString(string(text))
	}
	if !strings.HasPrefix(rev, found) {
		return &Refusal{fmt.Sprintf("its %s says that it was built from %s", f.Path, found)}
	}
	return nil
}

// RecordNames is Record for a result that was built elsewhere. names are the files of its source tree.
func RecordNames(names, patterns []string, built string) error {
	files := []string{}
	for _, name := range names {
		if glob.Match(patterns, name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return writeRecord(files, built)
}
