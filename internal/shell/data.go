package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/workdir"
)

// LayData lays the outputs of nodes into a working directory under the names that the file gives them.
func (r Refs) LayData(env *engine.Env, dir string, data []hclspec.Data) error {
	for _, item := range data {
		dst := filepath.Join(dir, filepath.FromSlash(item.Name))
		if !strings.HasPrefix(dst, dir+string(filepath.Separator)) {
			return fmt.Errorf("data %q: outside the working directory", item.Name)
		}
		in := r.Input(env, item.Ref)
		src := in.Dir
		if item.Ref.Kind != "source" { // a tree stays a tree, however small
			src = workdir.OnlyFile(in.Entry)
		}
		info, err := os.Stat(src)
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
		if info.IsDir() {
			err = workdir.CopyTree(dst, src)
		} else {
			err = workdir.CopyFile(dst, src)
		}
		if errors.Is(err, fs.ErrExist) {
			return &engine.Failure{Err: err, Failure: cache.Failure{
				Class: cache.Permanent, Rule: "data_conflict", Stage: "start", Message: fmt.Sprintf("data %q: there is a file of that name already", item.Name),
				Remedy: "give it another name in data",
			}}
		}
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
	}
	return nil
}
