package tasks

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
)

// onlyFile is the path of an entry's file if it has exactly one, else its directory.
func onlyFile(e cache.Entry) string {
	if len(e.Files) == 1 {
		return filepath.Join(e.Dir, filepath.FromSlash(e.Files[0].Path))
	}
	return e.Dir
}

// copyTree copies what is below src into dst, which need not exist. Copies, not links: commands may write to what they
// are given, and what is stored is never changed in place.
func copyTree(dst, src string) error {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	return os.CopyFS(dst, os.DirFS(src))
}

func copyFile(dst, src string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|info.Mode().Perm()&0o111)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// layData lays the outputs of nodes into a working directory under the names that the file gives them.
func (r refs) layData(env *engine.Env, dir string, data []hclspec.Data) error {
	for _, item := range data {
		dst := filepath.Join(dir, filepath.FromSlash(item.Name))
		if !strings.HasPrefix(dst, dir+string(filepath.Separator)) {
			return fmt.Errorf("data %q: outside the working directory", item.Name)
		}
		src := onlyFile(r.input(env, item.Ref).Entry)
		info, err := os.Stat(src)
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
		if info.IsDir() {
			err = copyTree(dst, src)
		} else {
			err = copyFile(dst, src)
		}
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
	}
	return nil
}

// keepOutputs moves from made to out the files that match the patterns. Each pattern must match at least one.
func keepOutputs(out, made string, patterns []string) error {
	kept := map[string]bool{}
	for _, pattern := range patterns {
		matches, err := doublestar.Glob(os.DirFS(made), pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			return fmt.Errorf("output pattern %q: %w", pattern, err)
		}
		if len(matches) == 0 {
			return missingOutput(made, pattern)
		}
		for _, m := range matches {
			if kept[m] {
				continue
			}
			kept[m] = true
			dst := filepath.Join(out, filepath.FromSlash(m))
			if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(made, filepath.FromSlash(m)), dst); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingOutput says what was there instead.
func missingOutput(made, pattern string) error {
	there, _ := doublestar.Glob(os.DirFS(made), "**", doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	what := "$OUT is empty"
	if len(there) > 0 {
		what = "$OUT holds " + strings.Join(there[:min(len(there), 5)], ", ")
	}
	return &engine.Failure{Failure: cache.Failure{
		Class: cache.Invalid, Rule: "no_output", Stage: "build",
		Message: fmt.Sprintf("the command succeeded but left no file that matches %q: %s", pattern, what),
		Remedy:  "let the command write its results below $OUT, or correct outputs",
	}}
}
