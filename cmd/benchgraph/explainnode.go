package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/journal"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/stats"
)

type explainFlags struct{ key, json bool }

func (a *app) explainNode() cli.Command {
	o := &explainFlags{}
	return cli.Command{
		Name: "explain", Args: "ADDR", Min: 1, Max: 1,
		Summary: "explain why a node is or is not up to date, or why a compare gave its outcomes",
		Long: "ADDR may be a pattern: explain 'trial.*' has a line for each node. Of one node, the changes in its " +
			"key are shown, the attempts that failed,\n" +
			"and, of a compare, by which figures each candidate has its outcome.",
		Flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.key, "key", false, "print the text of the key")
			a.jsonFlag(fs, &o.json)
		},
		Run: func(ctx context.Context, args []string) error { return a.runExplain(ctx, o, args[0]) },
	}
}

// one plans everything, and finds the node that the command line names.
func (s *session) one(ctx context.Context, text string) (*engine.Plan, *engine.Step, error) {
	p, _, err := s.plan(ctx, &selection{})
	if err != nil {
		return nil, nil, err
	}
	st, err := pick.Node(p, text)
	return p, st, err
}

func (a *app) runExplain(ctx context.Context, o *explainFlags, text string) error {
	s, err := a.open(ctx, access{about: []string{text}})
	if err != nil {
		return err
	}
	defer s.close()
	p, _, err := s.plan(ctx, &selection{})
	if err != nil {
		return err
	}
	found, err := pick.Nodes(p, text)
	if err != nil {
		return err
	}
	// A pattern gives a list in JSON, however many nodes it matches now, so that programs can rely on the form.
	if len(found) > 1 && !o.key || len(found) == 1 && o.json && found[0].Node.Address != pick.Quoted(text) {
		return s.explainAll(ctx, found, o)
	}
	st, err := pick.Single(found, text)
	if err != nil {
		return err
	}
	if o.json {
		doc, err := s.explained(ctx, st, o.key)
		if err != nil {
			return err
		}
		doc["diagnostics"] = view.Diagnostics(s.warnings)
		return view.JSON(a.stdout, doc)
	}
	if o.key {
		return a.raw([]byte(st.Text))
	}
	changes, since := s.changes(ctx, st)
	rows, err := s.outcomes(ctx, st)
	if err != nil {
		return err
	}
	lost := s.lost(st)
	fmt.Fprintf(a.stdout, "%s: %s, %s\n", view.Clean(st.Node.Address), view.Word(st), view.Clean(st.Reason))
	s.explainNow(p, st)
	fmt.Fprintf(a.stdout, "  key %s, declared at %s\n", st.Key, view.Clean(st.Node.Place))
	if o := st.Node.Origin; o != nil {
		fmt.Fprintf(a.stdout, "  %s\n", view.Clean(view.Origin(o, true)))
	}
	if len(changes) > 0 {
		fmt.Fprintf(a.stdout, "  changed since the %s:\n", since)
		for _, c := range changes {
			fmt.Fprintf(a.stdout, "    %s\n", view.Clean(c.String()))
		}
	}
	for _, dep := range st.Node.Needs {
		if d, ok := p.Step(dep.Address); ok && d.Action != engine.Cached {
			fmt.Fprintf(a.stdout, "  needs %s: %s, %s\n", view.Clean(dep.Address), view.Word(d), view.Clean(d.Reason))
		}
	}
	for _, t := range lost {
		fmt.Fprintf(a.stdout, "  attempt of %s failed [%s]: %s\n", t.Start.Local().Format(time.DateTime),
			view.Class(t.Failure), view.Clean(t.Failure.Text()))
	}
	view.Grounds(a.stdout, rows)
	return nil
}

// explainNow shows whether a running apply runs the node, or why the node waits in it.
func (s *session) explainNow(p *engine.Plan, st *engine.Step) {
	now, address := s.underWay(), st.Node.Address
	for _, n := range now.Running {
		if n.Address == address {
			fmt.Fprintf(s.stdout, "  runs now: attempt %d since %s\n", n.Attempt, n.Since.Local().Format(time.DateTime))
			return
		}
	}
	later := func(dep *engine.Node) bool { d, ok := p.Step(dep.Address); return ok && d.Action == engine.Run }
	if st.Action != engine.Run || slices.ContainsFunc(slices.Concat(st.Node.Needs, st.Node.Order, st.Node.After),
		later) {
		return
	}
	for _, waiter := range []string{address, ""} {
		if what := now.Waits[waiter]; what != "" {
			fmt.Fprintf(s.stdout, "  waits now: %s\n", view.Clean(what))
			return
		}
	}
}

// explainAll explains many nodes, a line each.
func (s *session) explainAll(ctx context.Context, found []*engine.Step, o *explainFlags) error {
	if o.json {
		var list []map[string]any
		for _, st := range found {
			doc, err := s.explained(ctx, st, o.key)
			if err != nil {
				return err
			}
			list = append(list, doc)
		}
		return view.JSON(s.stdout, map[string]any{"format": view.Format, "nodes": list,
			"diagnostics": view.Diagnostics(s.warnings)})
	}
	for _, st := range found {
		fmt.Fprintf(s.stdout, "%s: %s, %s\n", view.Clean(st.Node.Address), view.Word(st), view.Clean(st.Reason))
	}
	return nil
}

// outcomes returns the rows of a compare for its primary metrics, as status has them; nil for other nodes.
func (s *session) outcomes(ctx context.Context, st *engine.Step) ([]stats.Comparison, error) {
	at, err := hclspec.ParseAddress(st.Node.Address)
	if err != nil || at.Kind != "compare" {
		return nil, nil
	}
	p, err := s.standing(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.project.Stored(p).Findings(ctx)
	if err != nil {
		return nil, err
	}
	rows := []stats.Comparison{}
	for _, row := range rowsOf(found, s.project.Spec) {
		if row.Compare == at.Instance() && row.Primary {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// lost returns the failed attempts at a node under its present key.
func (s *session) lost(st *engine.Step) []journal.Attempt {
	return slices.DeleteFunc(s.journal.Attempts(st.Node.Address), func(t journal.Attempt) bool {
		return t.Failure == nil || t.Key != st.Key
	})
}

// changes returns the differences between a node's present key text and that of its last result.
func (s *session) changes(ctx context.Context, st *engine.Step) (changes []cache.Change, since string) {
	if m, ok := st.Stored(); ok && m.Key == st.Key {
		return nil, "" // the result is of an older attempt, when the file was the same
	}
	attempts := s.journal.Attempts(st.Node.Address)
	for i := len(attempts) - 1; i >= 0; i-- {
		old, err := s.store.Get(ctx, attempts[i].Key, false)
		if err != nil {
			continue
		}
		if old.Key == st.Key {
			return nil, ""
		}
		return cache.Diff(old.Text, st.Text), "result of " + attempts[i].Start.Local().Format(time.DateTime)
	}
	return nil, ""
}

// explained returns everything about a node, as JSON; with text, also the text of its key.
func (s *session) explained(ctx context.Context, st *engine.Step, text bool) (map[string]any, error) {
	list := []map[string]any{}
	changes, _ := s.changes(ctx, st)
	for _, c := range changes {
		list = append(list, map[string]any{"op": c.Op, "label": c.Label, "old": document.Present(c.Old),
			"new": document.Present(c.New), "text": c.String()})
	}
	doc := map[string]any{
		"format": view.Format, "address": st.Node.Address, "kind": st.Node.Kind, "action": st.Action,
		"reason": st.Reason,
		"key":    st.Key.String(), "place": st.Node.Place, "needs": view.Needs(st.Node), "changes": list,
		"failed_attempts": document.Present(s.lost(st))}
	if st.Node.Origin != nil {
		doc["origin"] = st.Node.Origin
	}
	if text {
		doc["text"] = strings.Split(strings.TrimSuffix(st.Text, "\n"), "\n")
	}
	rows, err := s.outcomes(ctx, st)
	if rows != nil {
		doc["comparisons"] = rows
	}
	return doc, err
}
