package transcript

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"

	"github.com/benchgraph/benchgraph/executor"
)

// noting is an Executor whose commands are noted.
type noting struct {
	executor.Executor
	t *Transcript
}

// Executor returns an Executor whose commands are noted. Commands within the container of another command are not
// noted: with them, benchgraph asks whether a server is ready, and which processes it has.
func (t *Transcript) Executor(e executor.Executor) executor.Executor {
	if e == nil {
		return nil
	}
	return noting{e, t}
}

// ExecutorIf is Executor if a condition holds, and else the Executor behind e: for commands that change nothing.
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
	index := n.t.command(&cmd)
	p, err := n.Executor.Start(ctx, cmd)
	if err == nil {
		n.t.mu.Lock()
		n.t.servers[p] = index
		n.t.mu.Unlock()
	}
	return p, err
}

// command notes a command before it is started, and returns the index of the step.
func (t *Transcript) command(cmd *executor.Command) int {
	hidden := hide(*cmd)
	s := Step{}
	for _, word := range cmd.Argv {
		s.Argv = append(s.Argv, hidden(word))
	}
	var beside executor.Process
	if c := cmd.Container; c != nil {
		beside = c.Beside
		if c.Files != nil {
			other := *c
			cmd.Container = &other
			s.Files, other.Files = t.unpack(c.Files)
		}
	}
	if cmd.Sandbox != nil {
		beside = cmd.Sandbox.Beside
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.servers[beside]; ok && beside != nil {
		s.Beside = i + 1
	}
	s.Place = t.place(placeOf(*cmd))
	t.Steps = append(t.Steps, s)
	return len(t.Steps) - 1
}

// mostContent bounds what is noted of the content of one file, in bytes.
const mostContent = 256 << 10

// unpack lists the files of a tar, and returns the tar once more. A file that an input has is named. Of others, the
// content is noted; a larger one is noted without.
func (t *Transcript) unpack(r io.Reader) ([]File, io.Reader) {
	packed, err := io.ReadAll(r)
	again := io.Reader(bytes.NewReader(packed))
	if err != nil {
		return nil, io.MultiReader(again, failing{err})
	}
	known := map[string]string{}
	for _, in := range t.inputs {
		for _, f := range in.Files {
			if f.SHA256 != "" {
				known[f.SHA256] = filepath.Join(in.Dir, filepath.FromSlash(f.Path))
			}
		}
	}
	var files []File
	for in := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := in.Next()
		if err != nil {
			return files, again
		}
		f := File{Path: "/" + h.Name, Executable: h.Mode&0o111 != 0}
		content, err := io.ReadAll(in)
		if err != nil {
			return files, again
		}
		sum := sha256.Sum256(content)
		if f.From = known[hex.EncodeToString(sum[:])]; f.From == "" && len(content) <= mostContent {
			f.Content = content
		}
		files = append(files, f)
	}
}

// failing is a Reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
