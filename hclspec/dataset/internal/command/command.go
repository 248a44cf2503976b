// Package command splits the command lines of benchmarks into the flags of the engine and those of the benchmark.
package command

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/sh"
)

// Command is the command line of a benchmark in parts.
type Command struct {
	Env map[string]string // assigned before the program
	// kind of benchmark: serving, latency, throughput, prefix_caching, …; empty: an unknown program
	Mode    string
	Model   string
	Dataset string   // name of the data set; empty: the command names none
	GPUs    int      // tensor parallel × pipeline parallel size; 0: not in the command
	Server  []string // flags of the engine
	Client  []string // flags of the benchmark itself
}

// errShell is the error for a command that uses more of the shell than words and quotes.
var errShell = errors.New("it is not one plain command, so it is kept whole")

// Split splits the command line of a benchmark. A command of an unknown program has no mode.
func Split(line string) (Command, error) {
	words, ok := sh.Words(line)
	if !ok {
		return Command{}, errShell
	}
	var c Command
	for len(words) > 0 && assignment().MatchString(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		if c.Env == nil {
			c.Env = map[string]string{}
		}
		c.Env[name], words = value, words[1:]
	}
	var engine string
	c.Mode, engine, words = program(words)
	if c.Mode == "" {
		return c, nil
	}
	c.arguments(engine, words)
	return c, nil
}

var assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)

var pythonName = lazyregexp.New(`^python[0-9.]*$`)

// program returns the mode and the engine of a command, by its program, and the arguments.
func program(words []string) (mode, engine string, rest []string) {
	if len(words) == 0 {
		return "", "", nil
	}
	name, rest := path.Base(words[0]), words[1:]
	if pythonName().MatchString(name) {
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-m" {
			rest = rest[1:]
		}
		if len(rest) > 1 && rest[0] == "-m" {
			return module(rest[1], rest[2:])
		}
		if len(rest) == 0 {
			return "", "", nil
		}
		name, rest = path.Base(rest[0]), rest[1:]
	}
	if found := script().FindStringSubmatch(name); found != nil {
		return found[1], "vllm", rest
	}
	if name == "vllm" && len(rest) > 0 {
		return vllm(rest)
	}
	return "", "", nil
}

var script = lazyregexp.New(`^benchmark_(\w+)\.py$`)

// vllm reads the subcommands of the program vllm.
func vllm(words []string) (mode, engine string, rest []string) {
	switch {
	case words[0] == "serve":
		return "server", "vllm", words[1:]
	case words[0] == "bench" && len(words) > 1 && words[1] == "serve":
		return "serving", "vllm", words[2:]
	case words[0] == "bench" && len(words) > 1 && !strings.HasPrefix(words[1], "-"):
		return words[1], "vllm", words[2:]
	}
	return "", "", nil
}

// module reads the module of python -m.
func module(name string, rest []string) (string, string, []string) {
	switch last := name[strings.LastIndexByte(name, '.')+1:]; {
	case name == "sglang.launch_server":
		return "server", "sglang", rest
	case strings.HasPrefix(name, "vllm.entrypoints.") && strings.HasSuffix(last, "api_server"):
		return "server", "vllm", rest
	case name == "sglang.bench_offline_throughput":
		return "throughput", "sglang", rest
	case strings.HasPrefix(name, "sglang.bench_"):
		return strings.TrimPrefix(last, "bench_"), "sglang", rest
	case strings.HasPrefix(last, "benchmark_"):
		return strings.TrimPrefix(last, "benchmark_"), "vllm", rest
	}
	return "", "", nil
}

// arguments assigns the arguments. The values of a flag are all words up to the next flag.
func (c *Command) arguments(engine string, words []string) {
	if len(words) > 0 && c.Mode == "server" && !isFlag(words[0]) {
		c.Model, words = words[0], words[1:]
	}
	tensor, pipeline := "", ""
	for len(words) > 0 {
		end := 1
		for end < len(words) && !isFlag(words[end]) {
			end++
		}
		argument := words[:end:end]
		words = words[end:]
		name, value := flagOf(argument)
		switch {
		case name == "model" || name == "model-path":
			c.Model = value
		case slices.Contains([]string{"tensor-parallel-size", "tp", "tp-size"}, name):
			tensor = value
			c.Server = append(c.Server, argument...)
		case slices.Contains([]string{"pipeline-parallel-size", "pp", "pp-size"}, name):
			pipeline = value
			c.Server = append(c.Server, argument...)
		case name == "host" || name == "port" || name == "backend" && value == engine:
			// benchgraph chooses the port; the engine's own backend is the default
		case name == "dataset-name" || name == "dataset" || name == "dataset-path":
			c.data(name, value, argument)
		case c.Mode == "server" || engineFlag(name):
			c.Server = append(c.Server, argument...)
		default:
			c.Client = append(c.Client, argument...)
		}
	}
	c.GPUs = times(tensor, pipeline)
}

// data stores the data set. The path of the well-known ShareGPT file depends on the machine; other paths are kept.
func (c *Command) data(name, value string, argument []string) {
	sharegpt := strings.Contains(strings.ToLower(path.Base(value)), "sharegpt")
	switch {
	case name == "dataset-name":
		c.Dataset = value
	case sharegpt:
		if c.Dataset == "" {
			c.Dataset = "sharegpt"
		}
	default:
		c.Client = append(c.Client, argument...)
	}
}

// isFlag reports whether a word names a flag; a negative number does not.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.'
}

// flagOf returns the plain name of a flag, with its first value.
func flagOf(argument []string) (name, value string) {
	name, value, ok := strings.Cut(strings.TrimLeft(argument[0], "-"), "=")
	if !ok && len(argument) > 1 {
		value = argument[1]
	}
	return strings.ReplaceAll(name, "_", "-"), value
}

// times multiplies two sizes, of which one may be missing; 0: both are missing, or one is no number.
func times(a, b string) int {
	if a == "" && b == "" {
		return 0
	}
	product := 1
	for _, s := range []string{a, b} {
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 4096 {
			return 0
		}
		product *= n
	}
	return product
}

// WithoutParallel removes the tensor parallel size if it is the number of GPUs: the benchmark block sets it for all
// commits.
func WithoutParallel(words []string, gpus int) []string {
	var rest []string
	for i := 0; i < len(words); i++ {
		name, value := flagOf(words[i:min(i+2, len(words))])
		if isFlag(words[i]) && slices.Contains([]string{"tensor-parallel-size", "tp", "tp-size"}, name) &&
			value == strconv.Itoa(gpus) {
			if !strings.Contains(words[i], "=") {
				i++
			}
			continue
		}
		rest = append(rest, words[i])
	}
	return rest
}

// Join writes words so that a shell reads the same words.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if !safeWord().MatchString(w) {
			quoted[i] = sh.Quote(w)
		}
	}
	return strings.Join(quoted, " ")
}

var safeWord = lazyregexp.New(`^[\w@%+=:,./~-]+$`)
