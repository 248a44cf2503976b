package workdir

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor/mask"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Files below $OUT are untrusted: they are checked, and no link is followed, before any of them is accepted.

// Limits of one command's files. They are far beyond any build, and keep a hostile command from filling the disk with
// files that cost it nothing.
const (
	mostFiles   = 1_000_000
	mostBytes   = 1 << 40
	mostListed  = cache.LongestMeta / 4 * 3 // bytes of the list of files of one result
	listedFile  = 96                        // bytes in that list for kind, size and digest of a file
	sparseFrom  = 16 << 30                  // bytes; a larger file must not consist of holes
	sparseRatio = 100
)

// Secret is a value from the environment that must not be in anything that is kept.
type Secret struct{ Name, Value string }

// Secrets are all secrets of a node's commands.
type Secrets []Secret

// admission is one check of a directory with files of commands.
type admission struct {
	root    *fs.Root
	title   string // name of the directory in messages
	within  string // path of the directory in the result
	most    int    // greatest size of the list of its files, in bytes
	listed  int
	secrets Secrets
	files   int
	bytes   int64
	links   []string
	removed []string         // removed sockets and pipes, for the log
	names   map[inode]uint64 // by file with several names: number of names not found yet
	example map[inode]string
}

// inode identifies a file on this machine.
type inode struct{ dev, ino uint64 }

// Admit verifies that files of commands can be kept: files, directories and links that stay inside, of a limited size,
// without a byte of a secret. Sockets and pipes are removed with a note, since servers leave them everywhere. Anything
// else is an *engine.Failure of the class invalid. shares is the number of such directories in the result; each has an
// equal share of the list of files.
func Admit(ctx context.Context, env *engine.Env, dir, title string, secrets Secrets, shares int) error {
	if err := isDirectory(dir, title); err != nil {
		return err
	}
	if err := unmounted(dir, title); err != nil {
		return err
	}
	root, err := fs.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	within, err := filepath.Rel(env.Out, dir)
	if err != nil {
		return err
	}
	a := &admission{root: root, title: title, within: within, most: mostListed / shares,
		secrets: searchable(secrets), names: map[inode]uint64{}, example: map[inode]string{}}
	if err := a.walk(ctx, "."); err != nil {
		return err
	}
	for id, missing := range a.names {
		if missing > 0 {
			return a.unfit("hard_link", a.example[id],
				"is a hard link to a file outside the result, where it could be changed", "copy the file instead")
		}
	}
	for _, name := range a.links {
		if err := a.link(name); err != nil {
			return err
		}
	}
	if len(a.removed) > 0 {
		text := "not stored: " + printable.Some(a.removed, mostNamed) +
			"; a result holds only files, directories and links"
		fmt.Fprintf(env.Log, "benchgraph: %s\n", text)
		env.Emit(engine.Event{Type: engine.Note, Reason: text})
	}
	return nil
}

// kindOf names the kind of an irregular file.
func kindOf(mode os.FileMode) string {
	switch mode.Type() {
	case os.ModeSocket:
		return "a socket"
	case os.ModeNamedPipe:
		return "a pipe"
	}
	return "a device"
}

// Find returns the first secret whose value is anywhere in r; nil if there is none.
func (s Secrets) Find(r io.Reader) (*Secret, error) { return find(r, searchable(s)) }

// searchable returns the secrets that can be found, without surrounding space, which programs tend to trim.
func searchable(secrets Secrets) Secrets {
	var list Secrets
	for _, s := range secrets {
		if s.Value = strings.TrimSpace(s.Value); s.Value != "" {
			list = append(list, s)
		}
	}
	return list
}

// Unfit returns the failure of a node whose files cannot be kept.
func Unfit(rule, message, remedy string) *engine.Failure {
	return &engine.Failure{Failure: failure.Failure{Class: failure.Invalid, Rule: rule, Stage: "run", Message: message,
		Remedy: remedy + "; nothing was stored"}}
}

// Unchanged verifies that a file has the bytes of a hash.
func Unchanged(name string, sum hash.Hash) error {
	f, err := os.Open(name)
	if err != nil {
		return ForeignOutput()
	}
	defer f.Close()
	now := sha256.New()
	if _, err := io.Copy(now, f); err != nil {
		return err
	}
	if !bytes.Equal(now.Sum(nil), sum.Sum(nil)) {
		return ForeignOutput()
	}
	return nil
}

// ForeignOutput returns the failure of a run whose output file has other content than the command printed.
func ForeignOutput() error {
	return Unfit("foreign_output",
		"the file with the command's output has other content than the command printed",
		"let commands write below $OUT and nowhere else")
}

// unmounted verifies that no command has mounted something in a directory or on it. Such files would belong to somebody
// else, or be gone with the machine's memory.
func unmounted(dir, title string) error {
	mounts, err := fs.MountsBelow(dir)
	if err != nil || len(mounts) == 0 {
		return err
	}
	name := title + strings.TrimPrefix(mounts[0], dir)
	return Unfit("mount_point", name+" is a mount point", "let the command unmount it and copy the files")
}

func (a *admission) unfit(rule, name, why, remedy string) error {
	return Unfit(rule, a.place(name)+" "+why, remedy)
}

func (a *admission) place(name string) string { return a.title + "/" + a.secrets.Mask(name) }

func (a *admission) walk(ctx context.Context, dir string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.root.Chmod(dir, 0o755); err != nil {
		return err
	}
	f, err := a.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
		for _, entry := range entries {
			if err := a.visit(ctx, path.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (a *admission) visit(ctx context.Context, name string) error {
	info, err := a.root.Lstat(name)
	if err != nil {
		return err
	}
	if a.files++; a.files > mostFiles {
		return Unfit("too_many_files", fmt.Sprintf("%s holds over %d files", a.title, mostFiles),
			"let the command pack them, or narrow outputs")
	}
	if len(path.Join(a.within, name)) > cache.LongestPath {
		return a.unfit("deep_path", name[:60]+"…", fmt.Sprintf("has a path of more than %d bytes", cache.LongestPath),
			"let the command make fewer directories within each other")
	}
	if err := a.leaks(name, "the name of %s", strings.NewReader(name)); err != nil {
		return err
	}
	if !info.IsDir() {
		if err := a.list(path.Join(a.within, name)); err != nil {
			return err
		}
	}
	switch info.Mode().Type() {
	case os.ModeDir:
		return a.walk(ctx, name)
	case os.ModeSymlink:
		a.links = append(a.links, name)
		return nil
	case os.ModeSocket, os.ModeNamedPipe:
		a.removed = append(a.removed, a.place(name)+", "+kindOf(info.Mode()))
		return a.root.Remove(name)
	case 0:
		return a.file(name, info)
	}
	return a.unfit("device", name, "is a device", "a result holds only files, directories and links")
}

// list adds a name or a link's target to the size of the list of files.
func (a *admission) list(text string) error {
	if a.listed += len(strconv.Quote(text)) + listedFile; a.listed > a.most {
		return Unfit("too_many_files", fmt.Sprintf("the names of the files in %s take more than %s", a.title,
			units.BytesSize(float64(a.most))), "let the command pack them, or narrow outputs")
	}
	return nil
}

func (a *admission) file(name string, info os.FileInfo) error {
	size := info.Size()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if st.Nlink > 1 {
			id := inode{uint64(st.Dev), st.Ino}
			if _, seen := a.names[id]; !seen {
				a.names[id], a.example[id] = uint64(st.Nlink), name
			}
			a.names[id]--
		}
		if size >= sparseFrom && st.Blocks*512 < size/sparseRatio {
			return a.unfit("sparse_file", name,
				fmt.Sprintf("says that it has %d bytes, and nearly all of them are holes", size),
				"let the command write only what it has to say")
		}
	}
	if a.bytes += size; a.bytes > mostBytes {
		return Unfit("too_large", fmt.Sprintf("%s holds over %d GiB", a.title, mostBytes>>30),
			"let the command keep less")
	}
	if len(a.secrets) == 0 {
		return nil
	}
	if info.Mode()&0o400 == 0 {
		if err := a.root.Chmod(name, info.Mode().Perm()|0o400); err != nil {
			return err
		}
	}
	f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.leaks(name, "%s", f)
}

// link checks a symbolic link: its target, followed as the system does, must be inside.
func (a *admission) link(name string) error {
	target, err := a.root.Readlink(name)
	if err != nil {
		return err
	}
	leak := a.leaks(name, "the target of the link %s", strings.NewReader(target))
	if err := cmp.Or(leak, a.list(target)); err != nil {
		return err
	}
	if _, err := a.root.Stat(name); path.IsAbs(target) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return a.unfit("link_outside", name, fmt.Sprintf("is a link to %q, which cannot be followed inside the result",
			a.secrets.Mask(target)), "copy the file instead")
	}
	return nil
}

// leaks returns the failure for a secret in r; nil if there is none.
func (a *admission) leaks(name, where string, r io.Reader) error {
	found, err := find(r, a.secrets)
	if err != nil || found == nil {
		return err
	}
	remedy := "let the command keep it out of what it writes"
	if len(found.Value) < 8 {
		remedy += fmt.Sprintf(" (its value has only %d bytes, which may also stand there by chance)", len(found.Value))
	}
	return Unfit("secret_in_result", fmt.Sprintf(where, a.place(name))+" holds the value of the secret "+found.Name,
		remedy)
}

// find returns the first secret that is anywhere in r; nil if there is none.
func find(r io.Reader, secrets Secrets) (*Secret, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	overlap := 0
	for _, s := range secrets {
		overlap = max(overlap, len(s.Value)-1)
	}
	buf := make([]byte, overlap+256<<10)
	have := 0
	for {
		n, err := r.Read(buf[have:])
		text := buf[:have+n]
		for i := range secrets {
			if bytes.Contains(text, []byte(secrets[i].Value)) {
				return &secrets[i], nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		have = copy(buf, text[max(0, len(text)-overlap):])
	}
}

// Mask replaces every secret in a text with ***.
func (s Secrets) Mask(text string) string {
	if len(s) == 0 {
		return text
	}
	var b strings.Builder
	m := mask.New(&b, s.Values())
	// A strings.Builder accepts everything.
	_, _ = io.WriteString(m, text)
	_ = m.Close()
	return b.String()
}

// Values returns the values of the secrets, in their order.
func (s Secrets) Values() []string {
	list := make([]string, len(s))
	for i := range s {
		list[i] = s[i].Value
	}
	return list
}

// Conceal masks secrets in an error: file names and output lines get into messages, and from there into the journal,
// events and reports.
func (s Secrets) Conceal(err error) error {
	if err == nil || len(s) == 0 {
		return err
	}
	if f, ok := errors.AsType[*engine.Failure](err); ok {
		for _, text := range []*string{&f.Message, &f.Evidence, &f.Remedy} {
			*text = s.Mask(*text)
		}
		return f
	}
	if text := err.Error(); s.Mask(text) != text {
		return errors.New(s.Mask(text))
	}
	return err
}
