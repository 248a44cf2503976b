package shell

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/device/standstill"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
	"github.com/benchgraph/benchgraph/shell/output"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// Before the first measured request, it is proven which artefact runs. The engine, outside of the container, tells the
// image of the container, whose root is read-only. The Python inside, with the server's environment and directory,
// tells the files of the installed packages. This detects an accident, such as a source tree in the working directory,
// but not a candidate that lies on purpose.

//go:embed prove.py
var proveScript string

// Limits for commands in a container, whose answers may be hostile.
const (
	provePatience = 5 * time.Minute
	MostSaid      = 16 << 20 // bytes of an answer
)

// Proof is the artefact that a command was proven to run.
type Proof struct {
	Image    string            // ID
	Packages []string          // name, version and RECORD digest of each installed package
	Modules  map[string]string // by module of these packages: the file that Python found
}

// Prove verifies that the running server uses the packages of its image.
func (s *Server) Prove(ctx context.Context) (Proof, error) {
	if err := s.sh.isOfImage(ctx, s.process); err != nil {
		return Proof{}, err
	}
	return s.sh.prove(ctx, s, s.spec.Command)
}

// Prove verifies that a command would use the packages of the shell's image, in its environment and directory.
func (s *Shell) Prove(ctx context.Context, command hclspec.Command) (Proof, error) {
	return s.prove(ctx, nil, command)
}

func (s *Shell) prove(ctx context.Context, srv *Server, command hclspec.Command) (Proof, error) {
	proof := Proof{Image: s.box.image.ID}
	packages := s.box.image.Packages
	if len(packages) == 0 {
		return proof, nil
	}
	for _, p := range packages {
		proof.Packages = append(proof.Packages, p.Name+" "+p.Version+" sha256:"+p.Record)
	}
	var err error
	proof.Modules, err = s.modules(ctx, srv, s.lookups(command))
	return proof, err
}

// mismatch returns the failure of a run that does not use its image's packages. Nothing was measured, so no candidate
// is charged; a retry would fail in the same way.
func mismatch(expected, found string) error {
	return &engine.Failure{Retry: &engine.Retry{Attempts: 1}, Failure: failure.Failure{
		Class: failure.Infra, Rule: "artefact_mismatch", Stage: "start",
		Message: "the running artefact is not the image's: expected " + expected + ", found " + found,
		Remedy: "let nothing hide the installed packages: no source tree in the working directory, no " +
			"PYTHONPATH, no installation at start",
	}}
}

// isOfImage verifies that a container was made from its image. Its root is read-only, so its packages are those of the
// image.
func (s *Shell) isOfImage(ctx context.Context, p executor.Process) error {
	c, ok := p.(executor.Contained)
	if !ok {
		return errors.New("the server runs in no container")
	}
	info, err := s.config.Engine.Inspect(ctx, c.Container())
	if err != nil {
		return s.notRun(err, "start")
	}
	if info.Image != s.box.image.ID {
		return mismatch("a container of "+s.box.image.ID, "one of "+info.Image)
	}
	return nil
}

// modules asks the image's Python which files the installed packages resolve to, by module, once for each directory
// from which the command may import.
func (s *Shell) modules(ctx context.Context, srv *Server, from []string) (map[string]string, error) {
	packages, err := json.Marshal(s.box.image.Packages)
	if err != nil {
		return nil, err
	}
	var said struct {
		Modules  map[string]string `json:"modules"`
		Problems []string          `json:"problems"`
	}
	for _, dir := range from {
		argv := []string{"python3", "-c", proveScript, string(packages)}
		if dir != "" {
			argv = append(argv, dir)
		}
		text, err := s.ask(ctx, srv, argv)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &said); err != nil {
			return nil, mismatch("Python to say where the installed packages are", fmt.Sprintf("%.200q", text))
		}
		if len(said.Problems) > 0 {
			return nil, mismatch("the installed packages", strings.Join(said.Problems, "; "))
		}
	}
	return said.Modules, nil
}

// ask runs a short command in the server's container, or in one of the shell's, and returns its standard output.
func (s *Shell) ask(ctx context.Context, srv *Server, argv []string) ([]byte, error) {
	ctx, cancel := standstill.Timeout(ctx, provePatience, errTimeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdout := head.Buffer{Most: MostSaid, Over: func() { stop(output.ErrTooLong) }}
	out := s.Capture()
	defer out.Close()
	cmd := s.command(argv, &stdout, output.NewLimit(MostSaid, stop).Writer(out))
	if srv != nil {
		cmd.Container = &executor.Container{Within: srv.process}
	}
	status, err := executor.Run(ctx, transcript.Of(s.env).ExecutorIf(false, s.runner()), cmd)
	switch {
	case errors.Is(context.Cause(ctx), output.ErrTooLong): // even if the command ended before it was stopped
		return nil, mismatch("an answer of Python in the container",
			fmt.Sprintf("one of more than %d MiB", MostSaid>>20))
	case errors.Is(err, errTimeout):
		return nil, mismatch("an answer of Python in the container", "none within "+provePatience.String())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case srv != nil && (err != nil || !status.OK()) && srv.dies():
		return nil, srv.died("start")
	case err != nil:
		return nil, s.notRun(err, "start")
	case status.OOM && !status.OK():
		return nil, s.outOfMemory("start", out)
	case !status.OK():
		return nil, mismatch("an answer of Python in the container", diagnosis.Ended(status)+": "+out.LastLine())
	}
	return stdout.Bytes(), nil
}

// lookups returns the directories that Python searches first for modules in a command: the directory of the script, or
// the working directory for a module (-m) or text (-c). It returns "" for a program in PATH, whose own directory is in
// the image.
func (s *Shell) lookups(command hclspec.Command) []string {
	var words []string
	for _, word := range s.expand(command) {
		words = slices.AppendSeq(words, Words(s.variables(word)))
	}
	var from []string
	for i, word := range words {
		if !isPython(path.Base(word)) {
			continue
		}
		rest := words[i+1:]
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-m" && rest[0] != "-c" {
			if rest[0] == "-X" || rest[0] == "-W" {
				rest = rest[1:]
			}
			rest = rest[min(1, len(rest)):]
		}
		switch {
		case len(rest) == 0:
		case rest[0] == "-m" || rest[0] == "-c":
			from = append(from, InsideWork)
		default:
			from = append(from, path.Join(InsideWork, path.Dir(rest[0])))
			if path.IsAbs(rest[0]) {
				from[len(from)-1] = path.Dir(rest[0])
			}
		}
	}
	if len(from) == 0 {
		from = []string{""}
	}
	slices.Sort(from)
	return slices.Compact(from)
}

// isPython reports whether a name is that of a Python: python, python3, python3.12.
func isPython(name string) bool {
	rest, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}
