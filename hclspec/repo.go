package hclspec

import (
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
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
	// Git takes a leading dash for an option, and runs the command that follows "ext::".
	if strings.HasPrefix(repo.URL, "-") || strings.HasPrefix(repo.URL, "ext::") || strings.ContainsFunc(repo.URL, func(c rune) bool { return c <= ' ' }) {
		r.Fail(r.At("url"), "Invalid URL", "%q is not the URL of a repository.", repo.URL)
	}
	r.l.spec.Repos = append(r.l.spec.Repos, repo)
}
