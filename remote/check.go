package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/device/machine"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/remote/objects"
)

// runsSome reports whether nodes of a plan run as jobs of the executor.
func (x *Executor) runsSome(p *engine.Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s engine.Step) bool {
		return s.Action == engine.Run && s.Node.Resources.Queue == x.Name
	})
}

// ready makes the directory of jobs, if the executor has one, and makes sure that files can be written there.
func (x *Executor) ready() error {
	if !x.Kind.Alike {
		return nil
	}
	if err := os.MkdirAll(x.WorkDir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(x.WorkDir)
	if err != nil {
		return err
	}
	// The members of a group are unknown here: a node may have another directory of users than this machine.
	if perm := info.Mode().Perm(); info.Mode()&os.ModeSticky == 0 && perm&0o022 != 0 {
		who := "others"
		if perm&0o002 == 0 {
			who = "its group"
		}
		return fmt.Errorf("%s can write to %s (mode %04o), and replace the requests of jobs there", who, x.WorkDir,
			perm)
	}
	f, err := os.CreateTemp(x.WorkDir, ".writable-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Exceeds returns an amount that each job asks for and that a node like this one does not have; "" if there is none.
func (x *Executor) Exceeds(node machine.Host) string {
	switch {
	case x.CPUs > node.Cores:
		return fmt.Sprintf("%d cores, and a node has %d", x.CPUs, node.Cores)
	case node.Memory > 0 && x.Memory > node.Memory:
		return fmt.Sprintf("%s of memory, and a node has %s", units.BytesSize(float64(x.Memory)),
			units.BytesSize(float64(node.Memory)))
	}
	return ""
}

// Check returns why the jobs of a plan cannot be submitted, and the remedy; nil if they can.
func (x *Executor) Check(ctx context.Context, p *engine.Plan) *failure.Failure {
	if !x.runsSome(p) {
		return nil
	}
	if _, err := x.Open(); err != nil {
		return &failure.Failure{Message: fmt.Sprintf("executor %s: %v", x.Name, err)} // the error has the remedy
	}
	if err := x.ready(); err != nil {
		return &failure.Failure{Message: fmt.Sprintf("executor %s: work_dir: %v", x.Name, err),
			Remedy: "Name a directory in which this machine and all nodes can write, and no other user or group " +
				"(chmod go-w, or +t)."}
	}
	if !x.Store.Puts() {
		return &failure.Failure{
			Message: fmt.Sprintf("executor %s: a job could not put its result into the shared store", x.Name),
			Remedy: "Remove read_only from the store; where it has trust, name a private key with " +
				"BENCHGRAPH_SIGNING_KEY.",
		}
	}
	if x.Project.Shared.JobRole != "" && x.Time > lentFor {
		return &failure.Failure{
			Message: fmt.Sprintf("executor %s: a job may run for %s, and the credentials that are lent to it last %s",
				x.Name, inMinutes(x.Time), inMinutes(lentFor)),
			Remedy: "Lower time, or remove job_role from the store and give the nodes credentials of their own.",
		}
	}
	return x.probe(ctx)
}

// probe returns why jobs could not use the shared store. Without the store, builds for the jobs would be in vain.
func (x *Executor) probe(ctx context.Context) *failure.Failure {
	owner, _ := x.owner() // an error shows when a job is submitted
	name := objects.Dir + owner + "/probe"
	err := x.Store.Away(ctx)
	if err == nil {
		err = bucket.Probe(ctx, x.Bucket, name)
	}
	if err == nil {
		_, err = x.lend(ctx, "benchgraph-probe", name)
	}
	if f, ok := errors.AsType[*engine.Failure](err); ok {
		return &f.Failure
	} else if err == nil {
		return nil
	}
	return &failure.Failure{Remedy: bucket.Remedy(err), Message: fmt.Sprintf(
		"executor %s: its jobs need the shared store %s: %v", x.Name, x.Project.Shared.URL, err)}
}
