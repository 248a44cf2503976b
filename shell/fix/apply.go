package fix

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/metrics/classify"
	"github.com/benchgraph/benchgraph/shell"
	"github.com/benchgraph/benchgraph/shell/input"
	"github.com/benchgraph/benchgraph/shell/transcript"
	"github.com/benchgraph/benchgraph/shell/workdir"
)

// Shell is a shell that applies fixes, and whose failures can teach fixes.
type Shell struct {
	*shell.Shell
	env     *engine.Env
	dir     string // working directory
	project string // directory that files of fixes come from
	cures   []Cure
	applied []Due
}

// Open opens a shell. Its failures can teach those of the cures that are not applied yet. project is the directory of
// the files that fixes put in place.
func Open(c shell.Config, env *engine.Env, r input.Refs, at shell.Place, project string, cures []Cure,
	applied []Due) (*Shell, error) {
	sh, err := c.Open(env, r, at)
	if err != nil {
		return nil, err
	}
	s := &Shell{Shell: sh, env: env, dir: at.Dir, project: project, cures: cures, applied: applied}
	sh.Cures = func() []classify.Rule { return Detectors(s.cures, s.applied) }
	return s, nil
}

// Apart returns a shell with a copy of the working directory in dir, and with $OUT out; see shell.Shell.Apart.
func (s *Shell) Apart(dir, out string) (*Shell, error) {
	sh, err := s.Shell.Apart(dir, out)
	other := *s
	other.Shell, other.dir = sh, dir
	return &other, err
}

// Apply applies fixes to the working directory. The verify command of each follows at once.
func (s *Shell) Apply(ctx context.Context, fixes []Due) error {
	for _, f := range fixes {
		s.Say("fix %s: %s\n", f.Fix.Address.Name, f.Fix.Description)
		if len(f.Pip) > 0 {
			return &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "fix_needs_image",
				Stage: "build",
				Message: f.Fix.Address.String() +
					" pins Python packages, which needs an image: the host's packages are never changed"}}
		}
		s.SetEnv(f.Env)
		for i, file := range f.Files {
			if err := s.place(file, f.Digests[i]); err != nil {
				return f.Misplaced(err)
			}
		}
		for i, run := range f.Run {
			command := hclspec.Command{Shell: run}
			if err := s.Run(ctx, "build", command, 0, nil); err != nil {
				return f.failed(err, fmt.Sprintf("run %d", i+1), command)
			}
		}
		if f.Verify.Shell != nil || f.Verify.Argv != nil {
			if err := s.Run(ctx, "verify", f.Verify, 0, nil); err != nil {
				return f.failed(err, "verify", f.Verify)
			}
		}
		s.applied = append(s.applied, f)
		s.env.Emit(f.Applied())
	}
	return nil
}

// place puts a fix's file into the working directory. A path outside is an error.
func (s *Shell) place(file hclspec.FixFile, digest string) error {
	to := s.OnHost(file.To)
	if !filepath.IsAbs(to) {
		to = filepath.Join(s.dir, to)
	}
	rel, err := filepath.Rel(s.dir, to)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("file %s: outside the working directory", file.To)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	content := []byte(file.Content)
	if file.From != nil {
		from := s.OnHost(file.From)
		if !filepath.IsAbs(from) {
			from = filepath.Join(s.project, from)
		}
		if content, err = os.ReadFile(from); err != nil {
			return fmt.Errorf("file %s: %w", file.From, fs.Cause(err)) // a full path could show the store
		}
		if name := Source(file); name != "" && digest != fmt.Sprintf("%x", sha256.Sum256(content)) {
			return workdir.InputChanged(name)
		}
	}
	transcript.Of(s.env).Wrote(to, content)
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	return root.WriteFile(rel, content, 0o644)
}

// Excused returns the failure of a command that succeeded without its metric. If the output matches a fix or a rule for
// a passing failure, that failure is returned instead of missing.
func (s *Shell) Excused(missing error) error {
	var f *engine.Failure
	if err := s.Failure("run", s.Last(), "succeeded without its metric"); !errors.As(err, &f) {
		return err
	}
	if _, fixable := Wanted(f.Rule); fixable || f.Class.Retried() {
		return f
	}
	return missing
}
