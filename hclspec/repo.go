package hclspec

import (
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
)

func repoSchema() *eval.Schema {
	return &eval.Schema{Kind: "repo", Label: true, Key: []string{"url", "path", "bundle"}}
}

func decodeRepo(r reader, b Block) {
	repo := Repo{Block: b, URL: r.str("url"), Path: r.str("path")}
	given := 0
	for _, name := range []string{"url", "path", "bundle"} {
		if r.has(name) {
			given++
		}
	}
	if r.has("bundle") {
		repo.Path = r.str("bundle")
	}
	if given != 1 {
		r.fail(b.Range, "Where is the repo?", "%s needs exactly one of url, path and bundle.", r.title())
	}
	// Git takes a leading dash for an option, and runs the command that follows "ext::".
	if strings.HasPrefix(repo.URL, "-") || strings.HasPrefix(repo.URL, "ext::") || strings.ContainsFunc(repo.URL, func(c rune) bool { return c <= ' ' }) {
		r.fail(r.at("url"), "Invalid URL", "%q is not the URL of a repository.", repo.URL)
	}
	r.l.spec.Repos = append(r.l.spec.Repos, repo)
}
