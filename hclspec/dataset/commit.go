package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/dataset/internal/command"
	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// Options select the columns of a table of commits.
type Options struct {
	Columns  map[string]string // field or parameter → column, in place of the usual names
	Params   []string          // further columns that become parameters under their own names
	Defaults map[string]string // parameters that are left out if they have this value
}

// Commit is a commit under study, as a row describes it.
type Commit struct {
	Name   string // label of its block
	Rev    string // all digits
	Parent string // empty: the first parent
	Title  string
	Repo   string // name of the repo's block; empty: all commits have the same repo
	Params []Param
}

// Param is one parameter of a commit: string, json.Number, bool, nil, []any or map[string]any.
type Param struct {
	Name  string
	Value any
}

var (
	hash  = lazyregexp.New(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	digit = lazyregexp.New(`^[0-9a-f]{4,63}$`)
)

// Commits converts rows to commits. A row that is no commit is a problem, and so is a row with two values for one
// field; other rows are not affected. The error reports that required columns are missing.
func Commits(rows []Row, o Options) ([]Commit, []Problem, error) {
	cols, err := find(rows, o)
	if err != nil {
		return nil, nil, err
	}
	t := &table{cols: cols, options: o, seen: map[string]Row{}}
	for _, row := range rows {
		t.add(row)
	}
	t.label()
	t.repos()
	t.omit()
	return t.commits, t.problems, nil
}

type table struct {
	cols     columns
	options  Options
	seen     map[string]Row // by revision
	commits  []Commit
	problems []Problem
}

func (t *table) lost(row Row, format string, args ...any) {
	t.problems = append(t.problems, Problem{row, fmt.Sprintf(format, args...), true})
}

func (t *table) note(row Row, format string, args ...any) {
	t.problems = append(t.problems, Problem{row, fmt.Sprintf(format, args...), false})
}

func (t *table) add(row Row) {
	rev, err := t.hash(row, "rev")
	if err != nil {
		t.lost(row, "%s", err)
		return
	}
	if first, ok := t.seen[rev]; ok {
		t.lost(row, "commit %s is that of %s", rev[:8], first.Place())
		return
	}
	t.seen[rev] = row
	c := Commit{Rev: rev, Title: t.cols.text(row, "title"), Repo: t.cols.text(row, "repo")}
	c.Title, _, _ = strings.Cut(c.Title, "\n\n") // a message begins with its subject
	if parent, err := t.hash(row, "parent"); err == nil && parent == rev {
		t.note(row, "the parent is left to git: the table names the commit itself")
	} else if err == nil {
		c.Parent = parent
	} else if len(t.cols["parent"]) > 0 && !errors.Is(err, errNoHash) {
		t.note(row, "the parent is left to git: %s", err)
	}
	t.params(row, &c)
	t.commits = append(t.commits, c)
}

var errNoHash = errors.New("it names no commit")

// hash returns the first cell of a field that is a full hash.
func (t *table) hash(row Row, field string) (string, error) {
	err := errNoHash
	for _, name := range t.cols[field] {
		s := strings.ToLower(text(row.Fields[name]))
		switch {
		case hash().MatchString(s):
			return s, nil
		case errors.Is(err, errNoHash) && digit().MatchString(s):
			err = fmt.Errorf("column %q has %s, %d digits of a hash, and 40 are needed", name, s, len(s))
		case errors.Is(err, errNoHash) && s != "":
			err = fmt.Errorf("column %q has %s, which is no hash of a commit", name, quote(s))
		}
	}
	return "", err
}

// quote returns a text, shortened and quoted, for a message.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}

// params collects the parameters of a commit in the order in which they are written.
func (t *table) params(row Row, c *Commit) {
	line := t.withoutCredentials(row, t.cols.text(row, "command"))
	plain, err := command.Split(line)
	if err != nil {
		t.note(row, "the command: %s", err)
	}
	if n, column := t.cols.listed(row, "command"); n > 1 {
		t.note(row, "the command: column %q has a list of %d, and the first of them is taken", column, n)
	}
	server := t.server(row)
	plain.Server = append(server.Server, plain.Server...)

	add := func(name string, value any) {
		if !empty(value) || name == "mode" && value == noMode {
			c.Params = append(c.Params, Param{name, value})
		}
	}
	add("mode", t.mode(row, line, plain))
	add("model", t.agreed(row, "model", first(plain.Model, server.Model)))
	if n := t.gpus(row, max(plain.GPUs, server.GPUs)); n > 0 {
		plain.Server = command.WithoutParallel(plain.Server, n)
		add("gpus", json.Number(strconv.Itoa(n)))
	}
	add("dataset", t.agreed(row, "dataset", plain.Dataset))
	add("server", command.Join(plain.Server))
	add("client", command.Join(plain.Client))
	add("env", environment(server.Env, plain.Env))
	if line != "" && plain.Mode == "" {
		add("command", line)
	}
	for _, name := range sortedKeys(t.options.Columns) {
		if !isField(name) {
			add(name, row.Fields[t.options.Columns[name]])
		}
	}
	for _, column := range t.options.Params {
		add(column, row.Fields[column])
	}
}

// server reads the command that starts the server, if the table has one.
func (t *table) server(row Row) command.Command {
	line := t.withoutCredentials(row, t.cols.text(row, "server_command"))
	if line == "" {
		return command.Command{}
	}
	c, err := command.Split(line)
	if err != nil || c.Mode != "server" {
		t.note(row, "the server's command is not one that is known: %s", quote(line))
		return command.Command{}
	}
	return c
}

// noMode is the mode of a row without a command in a table that has commands.
const noMode = "none"

// mode returns the kind of benchmark of a row. The command decides, since it is what runs.
func (t *table) mode(row Row, line string, c command.Command) any {
	declared := t.cols.text(row, "mode")
	switch {
	case line == "" && len(t.cols["command"]) > 0 && declared == "":
		return noMode
	case c.Mode == "":
		return declared
	case declared != "" && declared != c.Mode:
		t.note(row, "mode is %s, and its command is of mode %q, which is written", quote(declared), c.Mode)
	}
	return c.Mode
}

// agreed returns a value that both the command and a column may have. The command decides.
func (t *table) agreed(row Row, field, fromCommand string) string {
	declared := t.cols.text(row, field)
	if fromCommand == "" {
		return declared
	}
	if declared != "" && declared != fromCommand {
		t.note(row, "%s is %s, and its command has %s, which is written", field, quote(declared), quote(fromCommand))
	}
	return fromCommand
}

var gpuCount = lazyregexp.New(`^(?:[\w .-]*[:x*])?\s*(\d{1,4})\b`)

// gpus returns the number of devices that a row asks for; 0: not known.
func (t *table) gpus(row Row, fromCommand int) int {
	declared := t.cols.text(row, "gpus")
	n := 0
	if found := gpuCount().FindStringSubmatch(declared); found != nil {
		n, _ = strconv.Atoi(found[1])
	} else if declared != "" {
		t.note(row, "%s is no number of GPUs", quote(declared))
	}
	if n > 0 && fromCommand > n {
		t.note(row, "%d GPUs are declared, and its command needs %d, which is written", n, fromCommand)
	}
	return max(n, fromCommand)
}

func environment(all ...map[string]string) map[string]any {
	env := map[string]any{}
	for _, some := range all {
		for name, value := range some {
			if !slices.Contains(eval.Granted, name) { // such as the device on the machine of the study
				env[name] = value
			}
		}
	}
	return env
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return text(v) == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func isField(name string) bool {
	for _, f := range fields {
		if f.name == name {
			return true
		}
	}
	return false
}

// label names the commits by their first eight digits, and by more if several begin with the same ones.
func (t *table) label() {
	for length := 8; length <= 64; length += 4 {
		alike := map[string]int{}
		for _, c := range t.commits {
			alike[c.Rev[:min(length, len(c.Rev))]]++
		}
		for i := range t.commits {
			c := &t.commits[i]
			if start := c.Rev[:min(length, len(c.Rev))]; c.Name == "" && alike[start] == 1 {
				c.Name = start
			}
		}
	}
}

// repos makes names of blocks from the repos of commits, and removes them if there is only one.
func (t *table) repos() {
	names := map[string]bool{}
	for i := range t.commits {
		c := &t.commits[i]
		c.Repo = repoName(c.Repo)
		names[c.Repo] = true
	}
	if len(names) > 1 {
		return
	}
	for i := range t.commits {
		t.commits[i].Repo = ""
	}
}

var notName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// repoName returns a name of a block for a URL or a path.
func repoName(repo string) string {
	repo = strings.TrimSuffix(strings.TrimRight(repo, "/"), ".git")
	repo = notName().ReplaceAllString(repo[strings.LastIndexAny(repo, "/:")+1:], "_")
	if repo != "" && (repo[0] >= '0' && repo[0] <= '9' || repo[0] == '-') {
		repo = "_" + repo
	}
	return repo
}

// omit removes the parameters that have their default.
func (t *table) omit() {
	for i := range t.commits {
		c := &t.commits[i]
		c.Params = slices.DeleteFunc(c.Params, func(p Param) bool {
			value, ok := t.options.Defaults[p.Name]
			_, object := p.Value.(map[string]any)
			return ok && !object && text(p.Value) == value
		})
	}
}
