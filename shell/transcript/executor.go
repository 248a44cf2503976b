package transcript

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"

	"github.com/benchgraph/benchgraph/executor"
)

// noting is an Executor that notes its commands in a transcript.
type noting struct {
	executor.Executor
	t *Transcript
}

// Executor returns an Executor that notes its commands. It omits commands within the container of another command:
// these are benchgraph's own queries about servers and packages.
func (t *Transcript) Executor(e executor.Executor) executor.Executor {
	if e == nil {
		return nil
	}
	return noting{e, t}
}

// ExecutorIf is Executor if noted is true. Otherwise it returns the Executor behind e, for commands that change
// nothing.
func (t *Transcript) ExecutorIf(noted bool, e executor.Executor) executor.Executor {
	if n, ok := e.(noting); ok {
		e = n.Executor
	}
	if !noted {
		return e
	}
	return t.Executor(e)
}

// Start notes and starts a command.
func (n noting) Start(ctx context.Context, cmd executor.Command) (executor.Process, error) {
	if cmd.Container != nil && cmd.Container.Within != nil {
		return n.Executor.Start(ctx, cmd)
	}
	index := n.t.command(cmd)
	end := func() []File { return nil }
	if c := cmd.Container; c != nil && c.Files != nil {
		other := *c
		cmd.Container = &other
		other.Files, end = n.t.list(c.Files)
	}
	p, err := n.Executor.Start(ctx, cmd)
	files := end()
	n.t.mu.Lock()
	defer n.t.mu.Unlock()
	n.t.Steps[index].Files = files
	if err == nil {
		n.t.servers[p] = index
	}
	return p, err
}

// command notes a command before its start, and returns the index of its step.
func (t *Transcript) command(cmd executor.Command) int {
	hidden := hide(cmd)
	s := Step{}
	for _, word := range cmd.Argv {
		s.Argv = append(s.Argv, hidden(word))
	}
	var beside executor.Process
	if cmd.Container != nil {
		beside = cmd.Container.Beside
	}
	if cmd.Sandbox != nil {
		beside = cmd.Sandbox.Beside
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.servers[beside]; ok && beside != nil {
		s.Beside = i + 1
	}
	s.Place = t.place(placeOf(cmd))
	t.Steps = append(t.Steps, s)
	return len(t.Steps) - 1
}

// list returns a reader of the same tar, and a function that returns the files in it once the tar was read.
func (t *Transcript) list(r io.Reader) (same io.Reader, end func() []File) {
	out, in := io.Pipe()
	files := make(chan []File, 1)
	go func() {
		files <- t.files(tar.NewReader(out))
		_, _ = io.Copy(io.Discard, out) // rest of the stream, which may be no tar: the pipe must not fail
	}()
	return io.TeeReader(r, in), func() []File {
		in.Close()
		return <-files
	}
}

// files lists the files of a tar. A file with the content of an input's file has the path of that file.
func (t *Transcript) files(r *tar.Reader) (files []File) {
	known := map[string]string{}
	for _, in := range t.inputs {
		for _, f := range in.Files {
			if f.SHA256 != "" {
				known[f.SHA256] = filepath.Join(in.Dir, filepath.FromSlash(f.Path))
			}
		}
	}
	for {
		h, err := r.Next()
		if err != nil {
			return files
		}
		sum := sha256.New()
		content, err := io.ReadAll(io.LimitReader(io.TeeReader(r, sum), mostContent))
		if err == nil {
			_, err = io.Copy(sum, r)
		}
		if err != nil {
			return files
		}
		f := File{Path: "/" + h.Name, Executable: h.Mode&0o111 != 0}
		digest := hex.EncodeToString(sum.Sum(nil))
		if f.From = known[digest]; f.From == "" {
			if f.Content = content; h.Size > mostContent {
				f.Content, f.SHA256 = nil, digest
			}
		}
		files = append(files, f)
	}
}
