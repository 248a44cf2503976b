package hclspec

import (
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/diag"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var (
	transports = []string{"https", "http", "ssh", "git", "file"}
	// remote matches the beginning of a URL of a repository: a transport, or the form of ssh.
	remote = lazyregexp.New(`^([a-z+]+://|[^/:]+:[^/]|[^/:]+:/[^/])`)
	// hostless matches a URL without its transport: github.com/team/app.
	hostless = lazyregexp.New(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[a-z]{2,}/`)
)

func repoSchema() *eval.Schema {
	return &eval.Schema{Kind: "repo", Label: true, Key: []string{"url", "path", "bundle"}}
}

func decodeRepo(r reader, b Block) {
	repo := Repo{Block: b, URL: r.Str("url"), Path: r.Str("path")}
	given := 0
	for _, name := range []string{"url", "path", "bundle"} {
		if r.Has(name) {
			given++
		}
	}
	if r.Has("bundle") {
		repo.Path = r.Str("bundle")
	}
	if given != 1 && !r.Block.Misspelt() {
		r.Fail(b.Range, "Where is the repo?", "%s needs exactly one of url, path and bundle.", r.Title())
	}
	for _, name := range []string{"url", "path", "bundle"} {
		if _, known := r.Value(name); known && r.Str(name) == "" {
			r.Fail(r.At(name), "Where is the repo?", "%s is empty.", name)
		}
	}
	// Git takes a leading dash for an option, and runs the command that follows "ext::".
	if strings.HasPrefix(repo.URL, "-") || strings.HasPrefix(repo.URL, "ext::") ||
		strings.ContainsFunc(repo.URL, func(c rune) bool {
			return c <= ' '
		}) {
		r.Fail(r.At("url"), "Invalid URL", "%q is not the URL of a repository.", repo.URL)
	} else if transport, _, ok := strings.Cut(repo.URL, "://"); ok && !slices.Contains(transports, transport) {
		r.Fail(r.At("url"), "Invalid URL", "%q is not one of %s.%s", transport, strings.Join(transports, ", "),
			diag.Suggest(transport, transports))
	} else if hostless().MatchString(repo.URL) {
		r.Fail(r.At("url"), "Invalid URL",
			"%q has no transport: write \"https://%s\", or path = %q for a repository on this machine.", repo.URL,
			repo.URL, repo.URL)
	} else if repo.URL != "" && !remote().MatchString(repo.URL) {
		repo.Path, repo.URL = repo.URL, "" // a path is accepted in url, too
	}
	r.l.spec.Repos = append(r.l.spec.Repos, repo)
}
