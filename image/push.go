package image

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/container"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/shell/diagnosis"
)

// Push pushes a finished image to a registry. It is a node of its own: no node that uses the image waits for it, and
// another registry makes nothing stale.
type Push struct {
	*Maker
	To string // name in the registry
}

const pushFile = "push.json"

// pushRecord describes a pushed image.
type pushRecord struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest"` // of the manifest
	ID     string `json:"id"`     // of the image that was pushed
}

func (t *Push) Describe(d *cache.Description) { d.Add("push", t.To) }

func (t *Push) Run(ctx context.Context, env *engine.Env) error {
	if t.Offline {
		return &engine.Failure{Failure: failure.Failure{Class: failure.Infra, Rule: "offline", Stage: "run",
			Message: "-offline forbids to push " + t.To}}
	}
	image, err := Read(env.Inputs[0].Entry)
	if err != nil {
		return err
	}
	env.Emit(engine.Event{Type: engine.NodeProgress, Phase: "push"})
	digest, err := t.Shells.Engine.Push(ctx, image.ID, t.To, func(p container.Progress) {
		env.Emit(engine.Event{Type: engine.NodeProgress, Phase: p.Phase,
			Data: map[string]any{"done": p.Bytes, "total": p.Total}})
	})
	if err != nil {
		return diagnosis.EngineFailure("run", err)
	}
	text, err := json.MarshalIndent(pushRecord{Ref: t.To, Digest: digest, ID: image.ID}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(env.Out, pushFile), append(text, '\n'), 0o644)
}
