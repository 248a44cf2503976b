package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/cores"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// File is one file of the project that a task reads, as it was when the graph was built.
type File struct {
	Path string // slash-separated, relative to the project's directory
	cache.Hashed
}

// commandTask is the task of a task block, for all work that no other kind covers.
type commandTask struct {
	work
	spec *hclspec.Task
}

func (t *commandTask) Describe(d *cache.Description) {
	t.describeFiles(d)
	if t.spec.Source != (hclspec.Address{}) {
		d.Add("source", t.refs.Label(t.spec.Source))
	}
	t.describe(d, t.spec.Data, t.spec.Outputs)
}

func (t *commandTask) Run(ctx context.Context, env *engine.Env) (err error) {
	dir, made := env.Work, env.Out
	if len(t.spec.Outputs) > 0 { // only the declared outputs are kept
		dir, made = filepath.Join(env.Work, "dir"), filepath.Join(env.Work, "out")
	}
	sh, err := t.enter(ctx, env, shell.Place{Dir: dir, Out: made, Tree: t.spec.Source, Node: t.spec.Address})
	if err != nil {
		return err
	}
	defer func() { err = sh.Secrets.Conceal(err) }()
	for _, f := range t.files {
		root, away := t.p.rootOf(f)
		if err := f.lay(env, root, dir); err != nil && away && ctx.Err() == nil {
			return mountFailure("input_missing", fmt.Sprintf("input %s is missing in %s or has changed; files of "+
				"more than 64 MiB are not sent with jobs", f.Path, root), "bring the file there, or use a mount")
		} else if err != nil {
			return err
		}
	}
	if err := t.refs.LayData(env, dir, t.spec.Data); err != nil {
		return err
	}
	if err := sh.Apply(ctx, t.fixes); err != nil {
		return err
	}
	if err := sh.Run(ctx, "run", t.spec.Command, t.spec.Timeout, nil); err != nil {
		return err
	}
	return workdir.Keep(ctx, env, made, t.spec.Outputs, sh.Secrets)
}

// MaxSent is the size in bytes of the largest file of a project that jobs get a copy of.
const MaxSent = 64 << 20

// rootOf returns the directory that holds an input: the project's. A worker has a copy of the project without its large
// files, which stay in the original directory: away reports that case.
func (p *Facts) rootOf(f File) (dir string, away bool) {
	if p.Home != "" && f.Stamp.Size > MaxSent {
		return p.Home, true
	}
	return p.Spec.Dir, false
}

// lay copies one input into the working directory and fails if the input has changed since the key was made.
func (f File) lay(env *engine.Env, root, dir string) error {
	h, from := sha256.New(), filepath.Join(root, filepath.FromSlash(f.Path))
	to := filepath.Join(dir, filepath.FromSlash(f.Path))
	transcript.Of(env).Did("input", from, to, f.SHA256)
	err := fs.CopyTo(to, from, h)
	if errors.Is(err, os.ErrExist) {
		return &engine.Failure{Err: err, Failure: failure.Failure{Class: failure.Permanent, Rule: "data_conflict",
			Stage: "start", Message: fmt.Sprintf("input %s: the source has a file of that name already", f.Path),
			Remedy: "rename the file of the project"}}
	}
	if errors.Is(err, fs.ErrIrregular) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return workdir.InputChanged(f.Path)
	}
	if err != nil {
		return fmt.Errorf("input %s: %w", f.Path, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return workdir.InputChanged(f.Path)
	}
	return nil
}

// addTasks adds the nodes of all task blocks. Their inputs are found and hashed together, on all cores.
func (b *builder) addTasks(ctx context.Context) error {
	inputs, err := b.inputs()
	if err == nil {
		err = b.hashInputs(ctx, inputs)
	}
	if err != nil {
		return err
	}
	for i := range b.Spec.Tasks {
		if err := b.addTask(ctx, &b.Spec.Tasks[i], inputs[i]); err != nil {
			return err
		}
	}
	return nil
}

// hashInputs hashes the files that are not in Seen yet. An unreadable file is reported where a node uses it.
func (b *builder) hashInputs(ctx context.Context, inputs [][]string) error {
	var names, paths []string
	wanted := map[string]bool{}
	for _, list := range inputs {
		for _, name := range list {
			if _, known := b.Seen.Known[name]; !known && !wanted[name] {
				wanted[name] = true
				names, paths = append(names, name), append(paths, filepath.Join(b.Spec.Dir, filepath.FromSlash(name)))
			}
		}
	}
	hashed, _ := b.Stat.HashAll(ctx, paths)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, h := range hashed {
		if h.SHA256 != "" {
			b.Seen.Known[names[i]] = File{names[i], h}
		}
	}
	return nil
}

// addTask adds the node of a task block, with its inputs.
func (b *builder) addTask(ctx context.Context, s *hclspec.Task, inputs []string) error {
	if s.Out != nil {
		b.addOut(s.Block)
		return nil
	}
	needs := make([]hclspec.Address, len(s.Data), len(s.Data)+len(s.Needs))
	for i, item := range s.Data {
		needs[i] = item.Ref
	}
	t := &commandTask{b.newWork(s.Block, &s.Work, s.Source, append(needs, s.Needs...), b.onHost(s.Fixes)), s}
	var err error
	if t.files, err = b.inputFiles(ctx, s.Address, inputs); err != nil {
		return err
	}
	n := b.add(s.Block, t, t.refs)
	b.setResources(n, &s.Work)
	n.Resources.Quiet = s.Quiet
	if why := b.Misfits[n.Address]; why != "" {
		n.Exclude = blocked("%s", why)
	}
	return nil
}

// inputFiles returns the inputs of a node.
func (b *builder) inputFiles(ctx context.Context, of hclspec.Address, names []string) ([]File, error) {
	var files []File
	for _, name := range names {
		f, err := b.inputFile(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: input %s: %w", of, name, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// inputs returns, for each task, the files that the task declares and the files that its command names: a script in a
// command is an input although no pattern matches it.
func (b *builder) inputs() ([][]string, error) {
	const stride = 128
	project, err := os.Open(b.Spec.Dir)
	if err != nil {
		return nil, err
	}
	defer project.Close()
	all, known := make([][]string, len(b.Spec.Tasks)), b.Seen.Words
	looked := make([]map[string]bool, len(all)/stride+1)
	cores.Share(len(all), stride, func(from, to int) {
		words := map[string]bool{} // new words: whether the project has a file of that name
		for i := from; i < to; i++ {
			all[i] = inputsOf(&b.Spec.Tasks[i], func(name string) bool {
				is, ok := known[name]
				if !ok {
					is, ok = words[name]
				}
				if !ok {
					is = fs.IsRegular(project, name)
					words[name] = is
				}
				return is
			})
		}
		looked[from/stride] = words
	})
	for _, words := range looked {
		maps.Copy(known, words) // many commands share words
	}
	return all, nil
}

// inputsOf returns the sorted inputs of a task. isFile reports whether a name is a regular file of the project.
func inputsOf(s *hclspec.Task, isFile func(name string) bool) []string {
	names := slices.Clone(s.Inputs)
	texts := append(slices.Clip(s.Command.Argv), s.Command.Shell)
	for _, t := range texts {
		for _, part := range t {
			for word := range shell.Words(part.Literal) {
				if strings.Contains(word, "$") {
					continue // the value of the variable is unknown
				}
				name := path.Clean(word)
				if filepath.IsLocal(name) && !slices.Contains(s.Inputs, name) && isFile(name) {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inputFile returns an input as the process first read it. Otherwise a command that changes its own inputs would be
// stale again after every wave, for ever.
func (b *builder) inputFile(ctx context.Context, name string) (File, error) {
	if f, ok := b.Seen.Known[name]; ok {
		return f, nil
	}
	h, err := b.Stat.Hash(ctx, filepath.Join(b.Spec.Dir, filepath.FromSlash(name)))
	if err != nil {
		return File{}, err
	}
	f := File{name, h}
	b.Seen.Known[name] = f
	return f, nil
}

// FilesOf returns the files of the project that a node reads, each as the process first read it.
func FilesOf(n *engine.Node) []File {
	if t, ok := n.Task.(worker); ok {
		return t.common().files
	}
	return nil
}

// Alone returns the task block of a node that needs nothing but this block and the addresses in it to be made again;
// nil for any other node.
func Alone(n *engine.Node) *hclspec.Task {
	t, ok := n.Task.(*commandTask)
	if !ok || len(t.spec.Mounts) > 0 || t.spec.Candidate != "" || t.spec.Source != (hclspec.Address{}) ||
		t.spec.Image != (hclspec.Address{}) || len(t.cures) > 0 {
		return nil
	}
	return t.spec
}
