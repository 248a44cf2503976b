package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/livepage"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/printable"
)

type serveFlags struct {
	addr  string
	allow cli.List
}

// serveAt is the default of -addr.
const serveAt = "127.0.0.1:8700"

func (a *app) serve() cli.Command {
	o := &serveFlags{}
	return cli.Command{
		Name: "serve", Summary: "serve the report as a live page, read-only",
		Long: "Prints the page's address and answers until it is interrupted. It follows any apply, and " +
			"the next one.\n" +
			"An -addr that other machines reach needs a token, which is in the printed address.\n" +
			"/events is the run log as server-sent events, /metrics is for Prometheus.",
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.addr, "addr", serveAt, "listen on `HOST:PORT`; port 0 takes a free one")
			allowFlag(fs, &o.allow)
		},
		Run: func(ctx context.Context, _ []string) error { return a.runServe(ctx, o) },
	}
}

func (a *app) runServe(ctx context.Context, o *serveFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	if p.absent() {
		s, err := a.open(ctx, access{offline: true}) // reports the missing file
		if err == nil {
			s.close()
		}
		return err
	}
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return &cli.UsageError{Message: fmt.Sprintf("-addr %q: %v", o.addr, err), Remedy: "write HOST:PORT, like " +
			serveAt}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return hint("Choose another with -addr, like 127.0.0.1:0 for any free port.", "serve: %w", err)
	}
	defer l.Close()
	c := livepage.Config{
		Title: filepath.Base(p.dir), Runs: p.runDir(), Lock: p.applyLock(), Log: p.logOf, States: nodeStates(),
		Stamp: func() string { return a.stamp(p) },
		Tell:  func(err error) { a.explain(ctx, err) },
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		c.Host = host
	}
	page := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if !livepage.Loopback(l.Addr()) {
		c.Token = rand.Text()
		page.RawQuery = url.Values{"token": {c.Token}}.Encode()
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			if c.Host, err = os.Hostname(); err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			_, port, _ := net.SplitHostPort(l.Addr().String())
			page.Host = net.JoinHostPort(c.Host, port)
		}
	}
	liveLong()
	stat := cache.OpenStatCache(filepath.Join(p.state, "stat"))
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	look, warned := &shared.Look{}, false
	c.Read = func(ctx context.Context) (*livepage.Results, error) {
		results, err := a.readResults(ctx, access{offline: true, look: look, allow: o.allow, stat: stat})
		away := look.Away()
		if away != nil && !warned {
			a.note("Warning: shared store: %v. The page shows what is here.", away)
		}
		warned = away != nil
		if mistakes := (*diagError)(nil); errors.As(err, &mistakes) && hclspec.Abandoned(mistakes.diags) {
			end(err) // the evaluation that was given up may still run, and another would take more
		}
		return results, err
	}
	fmt.Fprintln(a.stdout, page.String())
	return livepage.Run(ctx, l, c)
}

// stamp returns a text that changes whenever the results may: when an attempt has ended, or a file has changed.
func (a *app) stamp(p place) string {
	files, _ := filepath.Glob(filepath.Join(p.dir, "*.hcl")) // the pattern is well-formed
	files = slices.Concat(files, a.varFiles, []string{p.lock, filepath.Join(p.state, "journal")})
	text := ""
	for _, name := range files {
		stamp, _, err := cache.StampFile(nil, name)
		text += fmt.Sprintln(name, stamp, err)
	}
	return text
}

// readResults reads the stored results, as status and report do, and writes nothing.
func (a *app) readResults(ctx context.Context, o access) (*livepage.Results, error) {
	silent := *a
	silent.stderr = io.Discard // plan and apply show the warnings
	s, err := silent.open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.stat = nil // shared with later readings, so not saved
		s.close()
	}()
	p, err := s.measured(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.project.Stored(p).Findings(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.besides(ctx, p, found, false); err != nil {
		return nil, err
	}
	whole, err := s.wholeReport()
	if err != nil {
		return nil, err
	}
	doc, err := s.document(findingsOf(found, whole.Of), s.project.Spec, whole)
	if err != nil {
		return nil, err
	}
	r := &livepage.Results{Document: doc, Attempts: map[string][]livepage.Attempt{}, Nodes: map[string]string{}}
	for _, n := range s.states(p, runlog.Run{}) {
		r.Nodes[n.Address] = n.State
	}
	for i := range p.Steps {
		st := &p.Steps[i]
		for _, t := range s.attempts(st, nil) {
			how := t.Start.Local().Format("2006-01-02 15:04:05") + ": " + printable.Line(t.How)
			r.Attempts[st.Node.Address] = append(r.Attempts[st.Node.Address],
				livepage.Attempt{Name: t.Name(), How: how})
		}
	}
	r.LogOf = func(benchmark, commit string, block int) string {
		node := hclspec.TrialAddress(benchmark, commit, block).String()
		if len(r.Attempts[node]) == 0 {
			return ""
		}
		return node
	}
	return r, nil
}

// wholeReport returns the report of all compares: the file's own if it has exactly one.
func (s *session) wholeReport() (*hclspec.Report, error) {
	whole, err := reportsOf(s.project.Spec, &reportFlags{}, nil)
	if err != nil {
		return nil, err
	}
	if len(whole) == 1 {
		return &whole[0], nil
	}
	all := hclspec.Report{}
	all.Address = hclspec.Address{Kind: "report", Name: filepath.Base(s.dir)}
	for _, c := range s.project.Spec.Compares {
		all.Of = append(all.Of, c.Address)
	}
	for i := range whole {
		for _, text := range whole[i].Recorded {
			if !slices.Contains(all.Recorded, text) {
				all.Recorded = append(all.Recorded, text)
			}
		}
	}
	return &all, nil
}
