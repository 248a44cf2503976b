package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
)

const remake = "benchgraph apply makes the entries that a node needs, and apply -replace=ADDRESS any entry."

type cacheFlags struct {
	json        bool
	maxSize     string
	maxAge      string
	unreachable bool
	dryRun      bool
	shared      bool
	replace     bool
}

// entryStore is a store for the cache command: that of this machine, or the shared one.
type entryStore struct {
	list    func(context.Context, func(cache.Meta)) error
	verify  func(context.Context, func(cache.Key, error)) error
	collect func(context.Context, cache.GCOptions) (cache.GCResult, error)
}

func (a *app) cache() cli.Command {
	o := &cacheFlags{}
	return cli.Command{
		Name: "cache", Args: "ls|gc|verify|push|pull", Min: 1, Max: 1,
		Summary: "list, remove, verify or share stored results",
		Long: "gc removes nothing without a limit: -max-size (least recently used first), -max-age, -unreachable " +
			"(results that no\nnode of the project would use now). With the latter two it also removes logs that no " +
			"result and no remembered\nfailure names. verify reads every byte and takes damaged entries out of the " +
			"way. With -shared, they work on the\nshared store, whose entries gc removes by the time when they were " +
			"put there. push sends the entries that the shared\nstore lacks; pull brings those that the project's " +
			"nodes use.",
		Flags: func(fs *flag.FlagSet) {
			a.jsonFlag(fs, &o.json)
			fs.StringVar(&o.maxSize, "max-size", "", "gc: keep at most `SIZE`, such as 20GiB")
			fs.StringVar(&o.maxAge, "max-age", "",
				"gc: remove results that were not used for `AGE`, such as 30d or 12h")
			fs.BoolVar(&o.unreachable, "unreachable", false,
				"gc: keep the results that the project uses, whatever the limits; without limits, remove the rest")
			fs.BoolVar(&o.shared, "shared", false, "ls, gc, verify: work on the shared store that the file declares")
			fs.BoolVar(&o.replace, "replace", false,
				"push: put results that replaced those there on request (apply -replace) in their places")
			fs.BoolVar(&o.dryRun, "dry-run", false, "gc: remove nothing, only list the results to remove")
		},
		Run: func(ctx context.Context, args []string) error { return a.runCache(ctx, o, args[0]) },
	}
}

func (a *app) runCache(ctx context.Context, o *cacheFlags, what string) error {
	switch what {
	case "ls":
		return a.withStore(ctx, o, func(d entryStore) error { return a.listCache(ctx, o, d) })
	case "verify":
		return a.withStore(ctx, o, func(d entryStore) error { return a.verifyCache(ctx, o, d) })
	case "gc":
		return a.collect(ctx, o)
	case "push":
		return a.pushCache(ctx, o)
	case "pull":
		return a.pullCache(ctx, o)
	}
	return &cli.UsageError{Message: fmt.Sprintf("cache: there is no %q%s", what,
		cli.Suggest(what, []string{"ls", "gc", "verify", "push", "pull"})), Remedy: "name ls, gc, verify, push or pull"}
}

// withStore calls f with the machine's store, which it opens even if the project's files have mistakes; or with the
// shared store, which these files declare.
func (a *app) withStore(ctx context.Context, o *cacheFlags, f func(entryStore) error) (err error) {
	if o.shared {
		return a.withShared(ctx, func(s *session) error {
			err := f(entryStore{s.store.Records, s.store.Check, s.store.Collect})
			if err != nil {
				err = s.sharedError(err)
			}
			return err
		})
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return err
	}
	d, err := disk.Open(p.store)
	if err != nil {
		return err
	}
	if d.Mended != "" {
		a.note("Warning: %s", d.Mended)
	}
	defer func() {
		if closed := d.Close(); err == nil {
			err = closed
		}
	}()
	list := func(ctx context.Context, f func(cache.Meta)) error {
		return d.List(ctx, nil, func(m cache.Meta) error {
			f(m)
			return nil
		})
	}
	return p.elsewhereStored(f(entryStore{list, d.Verify, d.GC}))
}

// entryDoc is an entry as JSON.
type entryDoc struct {
	Key      string    `json:"key"`
	Address  string    `json:"address"`
	Bytes    int64     `json:"bytes"`
	Files    *int      `json:"files"` // null: not known
	Created  time.Time `json:"created"`
	Duration float64   `json:"duration_s"`
}

// entryOf returns the JSON form of an entry, without its files.
func entryOf(m cache.Meta) entryDoc {
	return entryDoc{m.Key.String(), m.Address, m.Bytes, nil, m.Created, m.Duration.Seconds()}
}

// entries prints entries, a line each.
func (a *app) entries(list []entryDoc) {
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.Key[:12], view.Bytes(e.Bytes), e.Created.Local().Format(time.DateTime),
			view.Clean(e.Address)})
	}
	view.Table(a.stdout, "", rows)
}

func (a *app) listCache(ctx context.Context, o *cacheFlags, d entryStore) error {
	entries := []entryDoc{}
	var total int64
	err := d.list(ctx, func(m cache.Meta) {
		e := entryOf(m)
		if n := len(m.Files); !o.shared {
			e.Files = &n
		}
		entries = append(entries, e)
		total += m.Bytes
	})
	if err != nil {
		return err
	}
	if o.json {
		return view.JSON(a.stdout, map[string]any{"format": view.Format, "entries": entries, "bytes": total})
	}
	a.entries(entries)
	_, err = fmt.Fprintf(a.stdout, "%s, %s.\n", view.Count(len(entries), "entry"), view.Bytes(total))
	return err
}

func (a *app) verifyCache(ctx context.Context, o *cacheFlags, d entryStore) error {
	whole, untrusted := 0, 0
	type damageDoc struct {
		Key    string `json:"key"`
		Reason string `json:"reason"`
	}
	damaged := []damageDoc{}
	err := d.verify(ctx, func(key cache.Key, err error) {
		switch {
		case err == nil:
			whole++
		case errors.Is(err, shared.ErrUntrusted):
			untrusted++
		default:
			damaged = append(damaged, damageDoc{key.String(), err.Error()})
		}
	})
	if err != nil {
		return err
	}
	if o.json {
		err = view.JSON(a.stdout, map[string]any{
			"format": view.Format, "whole": whole, "damaged": damaged, "untrusted": untrusted})
	} else {
		for _, e := range damaged {
			fmt.Fprintf(a.stdout, "damaged %s: %s\n", e.Key[:12], view.Clean(e.Reason))
		}
		more := ""
		if untrusted > 0 {
			more = fmt.Sprintf(", %s signed by no key of trust", view.Number(untrusted))
		}
		_, err = fmt.Fprintf(a.stdout, "%s whole, %s damaged%s.\n", view.Count(whole, "entry"),
			view.Number(len(damaged)), more)
	}
	if err == nil && len(damaged) > 0 {
		return hint("They are no longer in the store. "+remake, "%s", view.Count(len(damaged), "damaged entry"))
	}
	return err
}

func (a *app) collect(ctx context.Context, o *cacheFlags) error {
	options := cache.GCOptions{DryRun: o.dryRun}
	p, err := a.place()
	if err != nil {
		return err
	}
	if o.maxSize != "" {
		if options.MaxBytes, err = cli.Size("-max-size", o.maxSize); err != nil {
			return err
		}
	}
	if o.maxAge != "" {
		if options.MaxAge, err = cli.Age("-max-age", o.maxAge); err != nil {
			return err
		}
	}
	if o.maxSize == "" && o.maxAge == "" && !o.unreachable {
		return &cli.UsageError{Message: "cache gc: nothing says what may go",
			Remedy: "give -max-size, -max-age or -unreachable"}
	}
	if o.unreachable && o.shared {
		return &cli.UsageError{Message: "-unreachable is about this project; others use the shared store, too",
			Remedy: "give -max-size or -max-age with -shared"}
	}
	if o.unreachable {
		if options.Keep, err = a.reachable(ctx); err != nil {
			return err
		}
	}
	return a.withStore(ctx, o, func(d entryStore) error {
		r, err := d.collect(ctx, options)
		if err != nil {
			return err
		}
		var logs runlog.Swept
		if !o.shared {
			named := map[string]bool{} // by entries that stay
			err = d.list(ctx, func(m cache.Meta) { named[m.Log] = true })
			for _, m := range r.Removed { // which a dry run leaves
				delete(named, m.Log)
			}
			if err == nil {
				logs, err = runlog.Sweep(p.state, named, options)
			}
			if err != nil {
				return err
			}
		}
		entries, measured := []entryDoc{}, 0
		for _, m := range r.Removed {
			entries = append(entries, entryOf(m))
			if strings.HasPrefix(m.Address, "trial.") {
				measured++
			}
		}
		if o.json {
			return view.JSON(a.stdout, map[string]any{"format": view.Format, "removed": len(r.Removed),
				"removed_bytes": r.RemovedBytes, "measured": measured, "entries": entries,
				"kept": r.Kept, "kept_bytes": r.KeptBytes, "quarantined": r.Quarantined, "dry_run": o.dryRun,
				"logs": logs.Files, "logs_bytes": logs.Bytes})
		}
		word := "Removed"
		if o.dryRun {
			word = "Would remove"
			a.entries(entries)
		}
		lost := ""
		if measured > 0 {
			lost = ", with " + view.Count(measured, "measured block") + " that only measuring again brings back"
		}
		_, err = fmt.Fprintf(a.stdout, "%s %s (%s)%s; %s stay (%s).\n", word, view.Count(len(r.Removed), "entry"),
			view.Bytes(r.RemovedBytes), lost, view.Number(r.Kept), view.Bytes(r.KeptBytes))
		if err == nil && logs.Files > 0 {
			_, err = fmt.Fprintf(a.stdout, "%s %s (%s).\n", word, view.Count(logs.Files, "log"), view.Bytes(logs.Bytes))
		}
		return err
	})
}

// reachable returns a function that reports which entries the project's nodes use now. They include those of baselines
// that were measured against themselves.
func (a *app) reachable(ctx context.Context) (func(cache.Key) bool, error) {
	keep := map[cache.Key]bool{}
	s, err := a.use(ctx, keep, access{offline: true})
	if err != nil {
		return nil, err
	}
	defer s.close()
	known := map[string][]hclspec.Address{} // by name of a benchmark: its baselines with blocks of noise
	rounds := 0
	for i := range s.project.Spec.Benchmarks {
		b := &s.project.Spec.Benchmarks[i]
		commit, _, _ := strings.Cut(b.Candidate, "/")
		at := hclspec.TrialAddress(b.Address.Name+" "+hclspec.Noise, commit, 1)
		if len(s.project.Journal.Attempts(at.String())) == 0 {
			continue
		}
		if _, err := s.project.Spec.AgainstItself(func(a hclspec.Address) bool { return a == b.Address }); err == nil {
			known[b.Address.Name] = append(known[b.Address.Name], b.Address)
			rounds = max(rounds, len(known[b.Address.Name]))
		}
	}
	for round := range rounds { // each plans one baseline of every benchmark
		derive := func(spec *hclspec.Spec) (*hclspec.Spec, error) {
			return spec.AgainstItself(func(a hclspec.Address) bool {
				list := known[a.Name]
				return round < len(list) && list[round] == a
			})
		}
		noise, err := a.use(ctx, keep, access{offline: true, derive: derive})
		if err != nil {
			return nil, err
		}
		noise.close()
	}
	return func(k cache.Key) bool { return keep[k] }, nil
}

// use plans the project, or the spec that o.derive makes of it. It adds to keep the keys of all stored results of the
// plan, and of the results of other classes of machines. The caller must close the session.
func (a *app) use(ctx context.Context, keep map[cache.Key]bool, o access) (*session, error) {
	s, err := a.open(ctx, o)
	if err != nil {
		return nil, err
	}
	p, _, err := s.plan(ctx, &selection{})
	if err != nil {
		s.close()
		return nil, err
	}
	foreign, err := s.project.Foreign(ctx) // reports show their results
	if err != nil {
		s.close()
		return nil, err
	}
	for _, stored := range append(foreign, s.project.Stored(p)) {
		for i := range stored.Plan.Steps {
			if meta, ok := stored.Plan.Steps[i].Stored(); ok {
				keep[meta.Key] = true
			}
		}
	}
	return s, nil
}
