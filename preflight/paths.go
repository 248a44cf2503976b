package preflight

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/sh"
	"github.com/benchgraph/benchgraph/preflight/program"
	"github.com/benchgraph/benchgraph/preflight/python"
	"github.com/benchgraph/benchgraph/preflight/revision"
)

var (
	// Directories of users and disks of one machine. No image has them, and another machine has others.
	private = lazyregexp.New(`^(~|/(home|Users|data|mnt|nfs|scratch|raid|gpfs|lustre|fsx|efs|shared|media|net|` +
		`workspace/users)/)[^ ]*`)
	// Options whose value is an input file, and options whose value is an output file.
	reads     = lazyregexp.New(`(^|-)(path|file|dataset|input|config|template|prompts|corpus|trace|schema)(s)?$`)
	writesOut = lazyregexp.New(`(^|-)(output|out|result|results|save|dump|log|logs|profile|export|cache|dir|download)` +
		`(-|$)`)
	extension = lazyregexp.New(`\.(json|jsonl|txt|csv|tsv|yaml|yml|toml|parquet|arrow|jinja|py|sh|xml|pkl|npy|gz|zst|` +
		`tar)$`)
)

// paths checks the files that a program gets as arguments.
func (c *checker) paths(b *Benchmark, p *program.Program) {
	options := map[int]string{} // names of options without dashes, by the index of their value
	for _, f := range program.Flags(p.Args) {
		switch name := strings.TrimLeft(program.Canonical(f.Name), "-"); {
		case f.Joined:
			c.path(b, p, f.Value, name)
		case f.Given:
			options[f.At+1] = name
		}
	}
	for i, w := range p.Args {
		if !program.IsFlag(w) {
			c.path(b, p, w, options[i])
		}
	}
	for _, env := range []map[string]string{b.Env, b.ServerEnv} {
		for _, name := range []string{"HF_HOME", "HF_HUB_CACHE", "TRANSFORMERS_CACHE", "HUGGINGFACE_HUB_CACHE"} {
			if at := env[name]; private().MatchString(at) && !b.mounted(at) && b.Image {
				c.add(Path, Fail, fmt.Sprintf("%s=%s leads to a directory that is declared nowhere", name, at),
					"declare it as a mount")
			}
		}
	}
}

// path checks one word. option is the name, without dashes, of the option whose value the word is.
func (c *checker) path(b *Benchmark, p *program.Program, w sh.Word, option string) {
	text := w.Text
	if w.Partial || text == "" || strings.Contains(text, sh.Ref) || strings.Contains(text, "://") ||
		strings.ContainsAny(text, "\n{}*") || strings.Contains(text, "...") { // a pattern, as of Go packages
		return
	}
	if private().MatchString(text) {
		c.outside(b, p, text, Path)
		return
	}
	reading := reads().MatchString(option) && !writesOut().MatchString(option)
	relative := strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || extension().MatchString(text) &&
		reading
	if !relative || option != "" && !reading {
		return
	}
	if strings.HasPrefix(path.Join(p.Dir, text), "../") && !p.Lost {
		c.add(kindOf(option), Fail, text+" leads out of the directory that the command runs in",
			"name a file of the tree, or lay it there with data")
		return
	}
	name, ok := p.Resolve(text)
	if !ok {
		return
	}
	switch s, tree, _ := c.lies(b, p, name); {
	case s == revision.IsFile || s == revision.IsDir:
		c.add(kindOf(option), OK, text+" is there", "")
	case s == revision.Unknown && c.files.Unreadable(tree) != "":
		c.add(kindOf(option), Unverified, text+": "+c.files.Unreadable(tree), "")
	case s == revision.Unknown || program.Made(p, name):
		c.add(kindOf(option), Unverified, text+" is made when the command runs, or changed by the patch", "")
	case !reading:
		c.add(Path, Warn, fmt.Sprintf("%s is not in %s", text, treeName(tree)),
			"name a file of the tree, or lay it there with data")
	default:
		c.add(kindOf(option), failing(p), fmt.Sprintf("%s is neither in %s nor laid there by data", text,
			treeName(tree)),
			"name it in data, with a fetch")
	}
}

func treeName(t revision.Tree) string {
	if t.IsZero() {
		return "the directory that the command runs in"
	}
	return "the tree of " + short(t.Rev)
}

// kindOf returns the check to which a file belongs, by its option.
func kindOf(option string) Check {
	if strings.Contains(option, "dataset") {
		return Dataset
	}
	return Path
}

// mounted reports whether a path lies below a mount.
func (b *Benchmark) mounted(name string) bool {
	return slices.ContainsFunc(b.Mounts, func(m string) bool {
		return name == m || strings.HasPrefix(name, strings.TrimSuffix(m, "/")+"/")
	})
}

// outside checks a path that leads out of the working directory.
func (c *checker) outside(b *Benchmark, p *program.Program, name string, k Check) {
	switch {
	case p.Lost && !path.IsAbs(name), b.mounted(name), strings.HasPrefix(name, sh.WorkDir):
	case path.IsAbs(p.Dir) && !path.IsAbs(name) && b.mounted(p.Dir):
	case private().MatchString(name) || private().MatchString(path.Join(p.Dir, name)):
		c.add(Path, Fail, name+" is a path of one machine that is declared nowhere",
			"lay the file there with data, name one of the tree, or declare a mount")
	case k == Script && path.IsAbs(name):
		c.add(Script, Unverified, name+" is no file of the project: it is there or not when the command runs", "")
	}
}

// needPath are data sets of serving benchmarks that are read from a file.
var needPath = []string{"sharegpt", "burstgpt", "custom"}

// dataset checks whether a client has the data set that it asks for.
func (c *checker) dataset(p *program.Program, a *python.Parser) {
	if a == nil || a.Program == nil {
		return
	}
	named, k := a.Match("--dataset-name")
	if k != python.Known || len(named) == 0 {
		return
	}
	name, given := p.Value("--dataset-name")
	which, how := name.Text, "asks for the data set "+name.Text
	if !given {
		// A serving client then takes its default; an offline program makes prompts of --input-len.
		if _, serving := a.Match("--request-rate"); serving != python.Known || named[0].Default == "" {
			return
		}
		which, how = named[0].Default, "names no data set, and the default is "+named[0].Default
	}
	if !slices.Contains(needPath, which) || name.Partial {
		c.add(Dataset, OK, p.Title()+" "+how, "")
		return
	}
	for _, f := range program.Flags(p.Args) {
		if o := program.Canonical(f.Name); o == "--dataset-path" || o == "--dataset" ||
			strings.HasPrefix(o, "--sharegpt-path") || strings.HasPrefix("--dataset-path", o) && len(o) > 10 &&
			f.Given {
			return // the file is checked as a path
		}
	}
	paths, k := a.Match("--dataset-path")
	switch {
	case k != python.Known || len(paths) == 0:
		c.add(Dataset, Unverified, p.Title()+" "+how, "")
	case paths[0].HasDefault || a.Program.Downloads:
		c.add(Dataset, Unverified, p.Title()+" "+how+"; it may fetch the file by itself",
			"lay the file there with data and name it with --dataset-path")
	case p.Maybe || a.Unread != "":
		c.add(Dataset, Warn, p.Title()+" "+how+", which needs --dataset-path",
			"lay the file there with data and name it with --dataset-path")
	default:
		c.add(Dataset, Fail, p.Title()+" "+how+", which needs --dataset-path",
			"lay the file there with data and name it with --dataset-path, or choose --dataset-name random")
	}
}
