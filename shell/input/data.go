package input

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// LayData lays results of nodes into a working directory, under the names that the file declares.
func (r Refs) LayData(env *engine.Env, dir string, data []hclspec.Data) error {
	for _, item := range data {
		dst := filepath.Join(dir, filepath.FromSlash(item.Name))
		if !strings.HasPrefix(dst, dir+string(filepath.Separator)) {
			return fmt.Errorf("data %q: outside the working directory", item.Name)
		}
		in := r.Input(env, item.Ref)
		if message, remedy := Unlaid(item, in.Entry); message != "" {
			return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "not_one_file",
				Stage: "start", Message: message, Remedy: remedy}}
		}
		from, verb, lay := workdir.OnlyFile(in.Entry), "file", fs.CopyFile
		if item.Tree {
			from, verb, lay = in.Dir, "tree", fs.CopyTree
		}
		transcript.Of(env).Did(verb, from, dst)
		err := lay(dst, from)
		if errors.Is(err, iofs.ErrExist) {
			return &engine.Failure{Err: err, Failure: failure.Failure{
				Class: failure.Permanent, Rule: "data_conflict", Stage: "start",
				Message: fmt.Sprintf("data %q: there is a file of that name already", item.Name),
				Remedy:  "give it another name in data",
			}}
		}
		if err != nil {
			return fmt.Errorf("data %q: %w", item.Name, err)
		}
	}
	return nil
}

// Unlaid returns why an entry cannot be laid out as declared, and the remedy; empty strings if it can.
func Unlaid(item hclspec.Data, e cache.Entry) (message, remedy string) {
	if item.Tree || len(e.Files) == 1 && e.Files[0].Link == "" {
		return "", ""
	}
	holds := fmt.Sprintf("holds %d files", len(e.Files))
	switch len(e.Files) {
	case 0:
		holds = "holds no file"
	case 1:
		holds = "holds only a link"
	}
	return fmt.Sprintf("data %q needs the only file of %s, which %s", item.Name, item.Ref, holds),
		fmt.Sprintf("write %q, with a slash at the end, to get the directory", item.Name+"/")
}
