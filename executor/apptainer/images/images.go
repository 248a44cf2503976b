//go:build linux

// Package images keeps images for Apptainer: a directory with an image's files, owned by this user, and a JSON file
// with its configuration. It imports and pulls images; it builds none.
package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Image is an image of the store: a JSON file with these fields, beside a directory with the image's files.
type Image struct {
	ID      string // SHA-256 of Config
	Root    string // name of the directory; images that differ only in labels share it
	Config  []byte // JSON, as in the registry
	Names   []string
	Digests []string // REPOSITORY@sha256:…
	Size    int64
	Created time.Time
	Env     []string          `json:"-"` // this and the following fields are parsed from Config
	Labels  map[string]string `json:"-"`
	Layers  []string          `json:"-"`
}

// Store is a directory of images, shared by all engines of this user.
type Store struct {
	Dir     string
	Host    executor.Executor // runs tar
	Environ []string          // environment of tar
}

// suffix ends the names of the images' JSON files.
const suffix = ".json"

func (i *Image) file(dir string) string {
	return filepath.Join(dir, strings.TrimPrefix(i.ID, "sha256:")+suffix)
}

// parse fills the fields that come from Config.
func (i *Image) parse() error {
	var c v1.ConfigFile
	if err := json.Unmarshal(i.Config, &c); err != nil {
		return err
	}
	i.Env, i.Labels = c.Config.Env, c.Config.Labels
	for _, l := range c.RootFS.DiffIDs {
		i.Layers = append(i.Layers, l.String())
	}
	return nil
}

// named returns an image with a configuration; the ID is the digest of the configuration.
func named(config []byte, root string, size int64) (*Image, error) {
	sum := sha256.Sum256(config)
	i := &Image{ID: "sha256:" + hex.EncodeToString(sum[:]), Root: root, Config: config, Size: size, Created: time.Now()}
	return i, i.parse()
}

// Keep stores an image. It keeps the names and digests that the store already has for the image.
func (s *Store) Keep(i *Image) error {
	if old, err := s.Find(i.ID); err == nil {
		for _, list := range []struct{ to, from *[]string }{{&i.Names, &old.Names}, {&i.Digests, &old.Digests}} {
			*list.to = append(*list.to, *list.from...)
			slices.Sort(*list.to)
			*list.to = slices.Compact(*list.to)
		}
		i.Created = old.Created
	}
	return s.Put(i)
}

// All returns all images, the youngest first.
func (s *Store) All() (all []*Image, err error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.Dir, f.Name()))
		i := &Image{}
		if err == nil {
			err = json.Unmarshal(text, i)
		}
		if err == nil {
			err = i.parse()
		}
		if errors.Is(err, iofs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b *Image) int { return b.Created.Compare(a.Created) })
	return all, err
}

// Find returns the image with an ID, name or digest.
func (s *Store) Find(ref string) (*Image, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.ID == ref || strings.TrimPrefix(i.ID, "sha256:") == ref || slices.Contains(i.Names, ref) ||
			slices.Contains(i.Digests, ref) {
			return i, nil
		}
	}
	return nil, NotFound("No such image: %s", ref)
}

// Put stores an image and overwrites what the store has for it.
func (s *Store) Put(i *Image) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return fs.Replace(i.file(s.Dir), text)
}

// Labelled stores a copy of an image with additional labels. It shares the files.
func (s *Store) Labelled(of *Image, labels map[string]string) (*Image, error) {
	var c v1.ConfigFile
	if err := json.Unmarshal(of.Config, &c); err != nil {
		return nil, err
	}
	all := maps.Clone(labels)
	for name, value := range c.Config.Labels {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	c.Config.Labels = all
	c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, noFiles)
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	i, err := named(text, of.Root, of.Size)
	if err != nil {
		return nil, err
	}
	return i, s.Keep(i)
}

// Remove removes an image, and its files unless another image shares them.
func (s *Store) Remove(i *Image) error {
	if err := os.Remove(i.file(s.Dir)); err != nil {
		return err
	}
	all, err := s.All()
	if err == nil && !slices.ContainsFunc(all, func(o *Image) bool { return o.Root == i.Root }) {
		err = fs.RemoveTree(filepath.Join(s.Dir, i.Root))
	}
	return err
}

// noFiles is the digest of a layer without files.
var noFiles = v1.Hash{Algorithm: "sha256", Hex: "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"}

// Load makes an image from a tar archive of files.
func (s *Store) Load(ctx context.Context, files io.Reader, changes []string) (*Image, error) {
	unlock, err := s.lock(ctx, func() {})
	if err != nil {
		return nil, err
	}
	defer unlock()
	digest := sha256.New()
	root, size, err := s.unpack(ctx, io.TeeReader(files, digest))
	if err != nil {
		return nil, err
	}
	c := v1.ConfigFile{OS: "linux", Created: v1.Time{Time: time.Now()}, Config: v1.Config{Labels: map[string]string{}}}
	c.RootFS = v1.RootFS{Type: "layers",
		DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: hex.EncodeToString(digest.Sum(nil))}}}
	for _, line := range changes {
		word, rest, _ := strings.Cut(line, " ")
		name, value, _ := strings.Cut(rest, "=")
		switch word {
		case "LABEL":
			c.Config.Labels[unquoted(name)] = unquoted(value)
		case "ENV":
			c.Config.Env = append(c.Config.Env, name+"="+unquoted(value))
		default:
			return nil, Cannot("%s in an import", word)
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	i, err := named(text, root, size)
	if err != nil {
		return nil, err
	}
	return i, s.Keep(i)
}

// unquoted undoes the quoting of container.Import.
func unquoted(word string) string {
	if len(word) < 2 || word[0] != '"' {
		return word
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`).Replace(word[1 : len(word)-1])
}

// rootPrefix begins the names of the directories with images' files.
const rootPrefix = "root-"

// unpack extracts a tar archive into a new directory, with all files owned by this user, and returns the directory's
// name. The caller must hold the lock.
func (s *Store) unpack(ctx context.Context, files io.Reader) (name string, size int64, err error) {
	dir, err := os.MkdirTemp(s.Dir, rootPrefix)
	if err != nil {
		return "", 0, err
	}
	var said strings.Builder
	in := &counted{r: files}
	status, err := executor.Run(ctx, s.Host, executor.Command{
		Argv: []string{"tar", "-x", "--no-same-owner", "--delay-directory-restore", "--exclude=dev/*", "-C", dir,
			"-f", "-"},
		Dir: "/", Env: s.Environ, Stdin: in, Stdout: &said, Stderr: &said,
	})
	if err == nil && in.err == nil {
		_, in.err = io.Copy(io.Discard, in) // the digest covers also the bytes after the end of the archive
	}
	if err == nil {
		err = in.err
	}
	if err == nil && !status.OK() {
		err = errors.New("unpack an image: " + strings.TrimSpace(said.String()))
	}
	if err = errors.Join(err, Furnish(dir)); err != nil {
		return "", 0, errors.Join(err, fs.RemoveTree(dir))
	}
	return filepath.Base(dir), in.n, os.Chmod(dir, 0o755)
}

// Furnish makes the directories at which Apptainer mounts file systems.
func Furnish(root string) error {
	dir, err := os.OpenRoot(root) // links in the image cannot lead out of it
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range []string{"dev", "proc", "sys", "etc", "tmp"} {
		if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, iofs.ErrExist) {
			return err
		}
	}
	return nil
}

// counted counts the bytes read and keeps the error.
type counted struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
