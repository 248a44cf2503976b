package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/printable"
)

// fields lists the parts of a commit, each with the usual names of its column, the surest first.
var fields = []struct {
	name  string
	usual []string
}{
	{"rev", []string{
		"full", "commit_full", "full_commit", "human_commit_full", "full_hash", "commit_hash", "commit_sha",
		"human_commit", "sha", "hash", "commit",
		"commit_id", "rev", "revision", "oid",
	}},
	{"parent", []string{
		"parent_full", "parent_commit_full", "parent_commit", "parent_hash", "parent_sha", "parent", "parent_rev",
		"base_commit", "baseline_commit", "base",
	}},
	{"title", []string{"title", "commit_subject", "subject", "commit_title", "pr_title", "commit_message", "message"}},
	{"repo", []string{"repo", "repository", "repo_name", "repo_url", "project"}},
	{"mode", []string{"mode", "benchmark_mode", "benchmark_type"}},
	{"model", []string{"model", "model_name", "models"}},
	{"gpus", []string{"gpus", "gpu_config", "gpu_count", "num_gpus", "n_gpus"}},
	{"dataset", []string{"dataset", "dataset_name"}},
	{"command", []string{"perf_command", "command", "test_script", "test_command", "benchmark_command", "bench_command",
		"cmd"}},
	{"server_command", []string{"server_command", "server_cmd", "serve_command"}},
}

// columns holds the columns of a table for each field.
type columns map[string][]string

// find returns the columns of each field, in the order of their usual names.
func find(rows []Row, o Options) (columns, error) {
	have := map[string][]string{} // spellings by plain name
	for _, row := range rows {
		for name := range row.Fields {
			if p := plain(name); !slices.Contains(have[p], name) {
				have[p] = append(have[p], name)
			}
		}
	}
	found := columns{}
	for _, f := range fields {
		for _, name := range f.usual {
			found[f.name] = append(found[f.name], slices.Sorted(slices.Values(have[name]))...)
		}
	}
	for _, name := range sortedKeys(o.Columns) {
		column := o.Columns[name]
		if !slices.Contains(have[plain(column)], column) {
			return nil, fmt.Errorf("no row has a column %q; there are %s", column, listNames(have))
		}
		found[name] = []string{column}
	}
	for _, column := range o.Params {
		if !slices.Contains(have[plain(column)], column) {
			return nil, fmt.Errorf("no row has a column %q; there are %s", column, listNames(have))
		}
	}
	if len(have) == 0 {
		return nil, errors.New("no table has a row")
	}
	if len(found["rev"]) == 0 {
		return nil, fmt.Errorf("no column looks like the hash of a commit; there are %s", listNames(have))
	}
	return found, nil
}

// text returns the first cell of a field that has a value.
func (c columns) text(row Row, field string) string {
	for _, name := range c[field] {
		if s := text(row.Fields[name]); s != "" {
			return s
		}
	}
	return ""
}

// listed returns the length of the list in the first cell with a value, and its column; 0: it is no list.
func (c columns) listed(row Row, field string) (n int, column string) {
	for _, name := range c[field] {
		if text(row.Fields[name]) != "" {
			list, _ := row.Fields[name].([]any)
			return len(list), name
		}
	}
	return 0, ""
}

// plain returns the form of a column's name that is compared.
func plain(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// hasHash reports whether an object is a row by itself: one of its fields is the hash of a commit.
func hasHash(object map[string]any) bool {
	for name, v := range object {
		if s, ok := v.(string); ok && slices.Contains(fields[0].usual, plain(name)) && s != "" {
			return true
		}
	}
	return false
}

// mostNames bounds the number of columns that a message lists.
const mostNames = 40

func listNames(have map[string][]string) string {
	var all []string
	for _, names := range have {
		all = append(all, names...)
	}
	slices.Sort(all)
	return printable.Some(all, mostNames)
}
