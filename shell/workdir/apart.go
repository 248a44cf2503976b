package workdir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// settled is the number of bytes that a member may leave for the kernel to write to the disk at any time.
const settled = 8 << 20

// Apart returns the environment of one of several members within an attempt, with directories of its own, so that their
// sizes are not added up. end removes these directories; what cannot be removed is reported at the end of the attempt.
// It also writes a large result of the member to the disk, before the next member is measured.
func Apart(env *engine.Env, name string) (own *engine.Env, end func(), err error) {
	one := *env
	one.Work, one.Scratch = filepath.Join(env.Work, name), filepath.Join(env.Scratch, "apart", name)
	end = func() {
		_ = errors.Join(fs.RemoveTree(one.Work), fs.RemoveTree(one.Scratch))
		fs.Settle(filepath.Join(env.Out, name), settled)
	}
	return &one, end, Renew(&one)
}

// Renew empties the directories of an environment.
func Renew(env *engine.Env) error {
	return errors.Join(fs.RemoveTree(env.Work), fs.RemoveTree(env.Scratch), os.MkdirAll(env.Work, 0o755),
		os.MkdirAll(env.Scratch, 0o755))
}
