package wheel

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
)

const (
	maxEntries    = 200_000
	maxDirectory  = 64 << 20 // bytes of the list of entries, which the reader keeps in memory
	maxEntry      = 8 << 30  // bytes of one unpacked entry: libraries with code for many GPUs are large
	maxTotal      = 32 << 30 // total bytes
	maxSourceFile = 64 << 20 // bytes of a source file in the overlay, which is kept in memory
	maxRatio      = 1040     // deflate cannot do better than 1032
	nameIsUTF8    = 0x800
	dosEpoch      = 1<<5 | 1 // 1 January 1980, the earliest date in a zip file
)

// prefixes are the directories in which source trees keep the top-level packages of a wheel.
var prefixes = []string{"", "src/", "python/"}

// archive is a wheel with valid entries.
type archive struct {
	files   map[string]*zip.File
	names   []string // of the files, sorted
	record  string   // name of the RECORD entry
	listing []row    // its rows
	signed  string   // name of the entry that signs the RECORD; empty: none
}

// sourceFile is a source file that is written into a wheel.
type sourceFile struct {
	data []byte
	perm iofs.FileMode
}

// wheel writes one wheel of the built result with the overlay.
func (l *layer) wheel(name string) (err error) {
	in, err := l.built.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	a, err := readArchive(in, info.Size())
	if err != nil {
		return err
	}
	replaced := map[string]string{}
	removed := map[string]bool{}
	for top, prefix := range l.places(a) {
		for _, file := range l.files {
			entry, ok := strings.CutPrefix(file, prefix)
			if ok && topOf(entry) == top {
				replaced[entry] = file
			}
		}
		for _, entry := range a.names {
			if topOf(entry) == top && l.gone(prefix+entry) {
				removed[entry] = true
			}
		}
	}
	out, err := l.out.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return a.write(out, replaced, removed, l.load)
}

// places returns, for each top-level package or module of the wheel, its prefix in the source tree: the prefix with
// most of the package's files.
func (l *layer) places(a *archive) map[string]string {
	tops := map[string]map[string]int{}
	for _, name := range a.names {
		top := topOf(name)
		if strings.HasSuffix(top, ".dist-info") || strings.HasSuffix(top, ".data") {
			continue
		}
		if tops[top] == nil {
			tops[top] = map[string]int{}
		}
		for _, prefix := range prefixes {
			if l.has(prefix + name) {
				tops[top][prefix]++
			}
		}
	}
	// Source files may also belong to a package whose overlaid files are all new.
	for _, file := range l.files {
		for _, prefix := range prefixes {
			name, ok := strings.CutPrefix(file, prefix)
			if counts := tops[topOf(name)]; ok && counts != nil && counts[prefix] == 0 {
				counts[prefix] = 0
			}
		}
	}
	places := map[string]string{}
	for top, counts := range tops {
		best := ""
		for _, prefix := range prefixes {
			_, known := counts[prefix]
			_, bestKnown := counts[best]
			if known && (!bestKnown || counts[prefix] > counts[best]) {
				best = prefix
			}
		}
		places[top] = best
	}
	return places
}

func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// load reads a source file. Links must stay inside the tree.
func (l *layer) load(name string) (sourceFile, error) {
	f, err := l.source.Open(name)
	if err != nil {
		return sourceFile{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return sourceFile{}, err
	}
	if !info.Mode().IsRegular() {
		return sourceFile{}, fmt.Errorf("source file %s: %w", name, fs.ErrIrregular)
	}
	data, err := fs.ReadAll(f, maxSourceFile)
	if err != nil {
		err = fmt.Errorf("source file %s: %w", name, err)
	}
	return sourceFile{data: data, perm: permission(info.Mode())}, err
}

// limited is a reader that fails after a number of bytes.
type limited struct {
	io.ReaderAt
	left int64
}

func (l *limited) ReadAt(p []byte, off int64) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fmt.Errorf("the list of entries is over %d MiB", maxDirectory>>20)
	}
	return l.ReaderAt.ReadAt(p, off)
}

// readArchive reads the list of a wheel's entries, and returns an error for invalid ones.
func readArchive(r io.ReaderAt, size int64) (*archive, error) {
	directory := &limited{ReaderAt: r, left: maxDirectory}
	z, err := zip.NewReader(directory, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	directory.left = math.MaxInt64
	if len(z.File) > maxEntries {
		return nil, fmt.Errorf("over %d entries", maxEntries)
	}
	a := &archive{files: map[string]*zip.File{}}
	var total, packed uint64
	for _, f := range z.File {
		if err := checkEntry(f); err != nil {
			return nil, fmt.Errorf("entry %q: %w", f.Name, err)
		}
		if strings.HasSuffix(f.Name, "/") {
			continue // directories are implied by their files
		}
		if a.files[f.Name] != nil {
			return nil, fmt.Errorf("entry %q: there twice", f.Name)
		}
		a.files[f.Name] = f
		a.names = append(a.names, f.Name)
		total += f.UncompressedSize64
		packed += f.CompressedSize64
	}
	switch {
	case total > maxTotal:
		return nil, fmt.Errorf("over %d GiB unpacked", maxTotal>>30)
	case packed > uint64(size):
		return nil, errors.New("entries overlap: they are larger than the file")
	}
	slices.Sort(a.names)
	for _, name := range a.names {
		if err := a.checkParents(name); err != nil {
			return nil, err
		}
	}
	return a, a.readRecord()
}

// checkParents returns an error if a parent directory of the name is a file of the wheel.
func (a *archive) checkParents(name string) error {
	for i, c := range name {
		if c == '/' && a.files[name[:i]] != nil {
			return fmt.Errorf("entry %q: is a file and a directory", name[:i])
		}
	}
	return nil
}

// checkEntry returns an error for an entry that is not allowed in a wheel.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	switch {
	case !iofs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00"):
		return errors.New("the name is not a relative path inside the wheel")
	case f.Mode()&^(iofs.ModePerm|iofs.ModeDir) != 0:
		return fmt.Errorf("neither a file nor a directory (%v)", f.Mode())
	case f.Flags&1 != 0:
		return errors.New("encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("compression method %d is not one of wheels", f.Method)
	case f.UncompressedSize64 > maxEntry || f.CompressedSize64 > maxEntry:
		return fmt.Errorf("over %d GiB", maxEntry>>30)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64,
		f.UncompressedSize64 > f.CompressedSize64*maxRatio:
		return errors.New("the sizes contradict each other")
	}
	return nil
}

// write writes the wheel without removed entries and with replaced ones (entry → source file). All other entries are
// copied without recompression: most of a wheel are libraries of hundreds of megabytes.
func (a *archive) write(out io.Writer, replaced map[string]string, removed map[string]bool,
	load func(string) (sourceFile, error)) error {
	if a.signed != "" {
		return fmt.Errorf("entry %q: a signed wheel cannot be changed", a.signed)
	}
	names := slices.Clone(a.names)
	for name := range replaced {
		if a.files[name] != nil {
			continue
		}
		if err := a.checkParents(name); err != nil {
			return err
		}
		names = append(names, name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return removed[name] || name == a.record })
	// Metadata last, as the format recommends: it can then be extended without rewriting the rest.
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(distInfo(x), distInfo(y)), cmp.Compare(x, y))
	})
	z := zip.NewWriter(out)
	rows := slices.DeleteFunc(slices.Clone(a.listing), func(r row) bool {
		_, laid := replaced[r.name]
		return laid || removed[r.name] || r.name == a.record
	})
	for _, name := range names {
		source, ok := replaced[name]
		if !ok {
			if err := copyEntry(z, a.files[name]); err != nil {
				return fmt.Errorf("entry %q: %w", name, err)
			}
			continue
		}
		file, err := load(source)
		if err != nil {
			return err
		}
		if err := addEntry(z, name, file); err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		rows = append(rows, rowOf(name, file.data))
	}
	text, err := formatRecord(rows, a.record)
	if err != nil {
		return err
	}
	if err := addEntry(z, a.record, sourceFile{data: text, perm: 0o644}); err != nil {
		return err
	}
	return z.Close()
}

func distInfo(name string) int {
	if strings.HasSuffix(topOf(name), ".dist-info") {
		return 1
	}
	return 0
}

// header returns the header of an entry, without time and place of its creation.
func header(name string, perm iofs.FileMode) *zip.FileHeader {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(perm)
	//lint:ignore SA1019 entries that are copied raw take their date from here alone
	h.ModifiedDate = dosEpoch
	return h
}

func copyEntry(z *zip.Writer, f *zip.File) error {
	h := header(f.Name, permission(f.Mode()))
	h.Method, h.CRC32, h.Flags = f.Method, f.CRC32, f.Flags&nameIsUTF8
	h.CompressedSize64, h.UncompressedSize64 = f.CompressedSize64, f.UncompressedSize64
	w, err := z.CreateRaw(h)
	if err != nil {
		return err
	}
	r, err := f.OpenRaw()
	if err != nil {
		return err
	}
	n, err := io.Copy(w, r)
	if err == nil && uint64(n) != f.CompressedSize64 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func addEntry(z *zip.Writer, name string, file sourceFile) error {
	w, err := z.CreateHeader(header(name, file.perm))
	if err != nil {
		return err
	}
	_, err = w.Write(file.data)
	return err
}

// rowOf returns the RECORD row of a file: its hash in URL-safe base64 without padding, and its size.
func rowOf(name string, data []byte) row {
	sum := sha256.Sum256(data)
	return row{name: name, hash: "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), size: fmt.Sprint(len(data))}
}
