package workdir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// settled is how much a member may leave that the kernel writes to the disk whenever it likes.
const settled = 8 << 20

// Apart is the environment of what one of several does within an attempt, by its name. What it works with is its own,
// so that it is not counted as that of the next one, and end removes it. What cannot be removed is told when the
// attempt ends, with all else that it leaves. What it left in the result is written to the disk by then, where it is
// much: the next one is measured.
func Apart(env *engine.Env, name string) (own *engine.Env, end func(), err error) {
	one := *env
	one.Work, one.Scratch = filepath.Join(env.Work, name), filepath.Join(env.Scratch, "apart", name)
	end = func() {
		_ = errors.Join(fs.RemoveTree(one.Work), fs.RemoveTree(one.Scratch))
		fs.Settle(filepath.Join(env.Out, name), settled)
	}
	return &one, end, Renew(&one)
}

// Renew empties the directories that an environment works with.
func Renew(env *engine.Env) error {
	return errors.Join(fs.RemoveTree(env.Work), fs.RemoveTree(env.Scratch), os.MkdirAll(env.Work, 0o755),
		os.MkdirAll(env.Scratch, 0o755))
}
