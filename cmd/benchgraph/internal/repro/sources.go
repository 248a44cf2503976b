package repro

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/shell/transcript"
)

// Sources are where transcripts are kept: in the store for results, beside the logs for failures.
type Sources struct {
	Store   cache.Store
	Journal *journal.Journal
	LogOf   func(attempt string) string
}

// Missing is the error for a node without a transcript.
type Missing struct{ message, Remedy string }

func (m *Missing) Error() string { return m.message }

// Script returns the script of the last attempt at a node. A benchmark runs nothing itself: its script is its section
// of the first block that has one.
func (k Sources) Script(ctx context.Context, p *engine.Plan, st *engine.Step) (string, error) {
	script, err := k.script(ctx, st, "")
	for _, dep := range st.Node.Needs {
		if block, ok := p.Step(dep.Address); ok && err != nil && st.Node.Kind == "benchmark" {
			if one, failed := k.script(ctx, block, st.Node.Address); failed == nil {
				return one, nil
			}
		}
	}
	return script, err
}

func (k Sources) script(ctx context.Context, st *engine.Step, section string) (string, error) {
	a := Attempt{Node: st.Node.Address, Section: section, Stored: func(key cache.Key) (string, bool) {
		e, err := k.Store.Get(ctx, key, false)
		return e.Dir, err == nil
	}}
	text, title, err := k.last(ctx, st)
	if err == nil {
		a.Title = title
		a.Transcript, err = transcript.Parse([]byte(text))
	}
	if err != nil {
		return "", err
	}
	return a.Script()
}

// last returns the transcript of the last attempt at a node, and a title of the attempt.
func (k Sources) last(ctx context.Context, st *engine.Step) (text, title string, err error) {
	at := st.Node.Address
	meta, stored := st.Stored()
	if all := k.Journal.Attempts(at); len(all) > 0 {
		last := all[len(all)-1]
		if last.Failure != nil {
			text, err := os.ReadFile(engine.TranscriptOf(k.LogOf(last.ID)))
			if errors.Is(err, os.ErrNotExist) {
				err = &Missing{"there is no transcript of the last attempt at " + at + ", which failed",
					"benchgraph logs " + quote(at) + " tells more."}
			}
			return string(text), fmt.Sprintf("%s, attempt %s, which failed: %s", at, last.ID, last.Failure.Message), err
		}
		if !stored {
			meta.Key = last.Key
		}
	}
	e, err := k.Store.Get(ctx, meta.Key, false)
	if err != nil {
		return "", "", &Missing{at + " has not been run, so there is no transcript",
			"benchgraph apply -target=" + quote(at)}
	}
	if e.Transcript == "" {
		return "", "", &Missing{"there is no transcript of " + at + ": it runs no command, an older version stored " +
			"it, or it came from a shared store with trust",
			"benchgraph apply -replace=" + quote(at) + " runs it again on this machine."}
	}
	if title = fmt.Sprintf("%s, attempt %s", at, e.Log); !stored {
		title += ", before the node was changed"
	}
	return e.Transcript, title, nil
}
