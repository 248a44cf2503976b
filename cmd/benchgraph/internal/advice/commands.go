package advice

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/internal/sh"
)

// commands warns of commands that hold characters of a text processor.
func (a *adviser) commands(spec *hclspec.Spec) {
	for i := range spec.Wheels {
		if w := &spec.Wheels[i]; w.Build != nil {
			a.characters(w.Block, w.Build.Command)
		}
	}
	for i := range spec.Tasks {
		a.characters(spec.Tasks[i].Block, spec.Tasks[i].Command)
	}
	for i := range spec.Benchmarks {
		b := &spec.Benchmarks[i]
		a.characters(b.Block, b.Command)
		if b.Server != nil {
			a.characters(b.Block, b.Server.Command)
			a.port(b)
			a.announced(b)
		}
	}
}

// quoted matches quoted parts of a shell text; unusual finds spaces that separate no words, and dashes that begin no
// option.
var (
	quoted  = lazyregexp.New(`'[^']*'|"(?:[^"\\]|\\.)*"|#.*`)
	unusual = lazyregexp.New(`[\x{a0}\x{2007}\x{202f}\x{200b}\x{feff}]|(?:^|\s)[\x{2013}\x{2014}\x{2212}]+[a-z]`)
)

func (a *adviser) characters(b hclspec.Block, command hclspec.Command) {
	text := literal(command)
	if !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return
	}
	if found := unusual().FindString(quoted().ReplaceAllString(text, "")); found != "" {
		a.warn(command.Range, b.Address.Name, "Unusual character in a command",
			"A command of %s.%s holds %+q, which a shell takes for a letter. Write a usual space or hyphen.",
			b.Address.Kind, b.Address.Name, found)
	}
}

// fixedPort finds a port that a command names by its number.
var fixedPort = lazyregexp.New(`(?:(?:^|\s)(?:--port|-p)[= ]+|(?:localhost|127\.0\.0\.1|0\.0\.0\.0):)(\d{4,5})\b`)

// port warns of a server, or of the command that talks to it, that uses a fixed port: a server of something else may
// have it.
func (a *adviser) port(b *hclspec.Benchmark) {
	for _, of := range []struct {
		what    string
		command hclspec.Command
		env     map[string]hclspec.Text
	}{{"server", b.Server.Command, b.Server.Env}, {"command", b.Command, nil}} {
		text := literal(of.command)
		own := text
		for _, env := range []map[string]hclspec.Text{b.Env, of.env} {
			for _, value := range env {
				text += fmt.Sprint(value)
			}
		}
		if strings.Contains(text, "PORT") {
			continue
		}
		if port := fixedPort().FindStringSubmatch(own); port != nil {
			a.warn(of.command.Range, b.Address.Name+of.what, "Fixed port",
				"The %s of benchmark.%s uses port %s, where the server of another block or program may answer. Write "+
					"$PORT instead of %[3]s.", of.what, b.Address.Name, port[1])
		}
	}
}

// announced warns of a server that counts as ready by a line that its command prints before it starts the server.
func (a *adviser) announced(b *hclspec.Benchmark) {
	text := literal(b.Server.Command)
	if b.Server.Log == "" || !strings.HasPrefix(text, "echo ") {
		return
	}
	log, err := regexp.Compile(b.Server.Log)
	if err != nil || log.MatchString("") {
		return
	}
	list, _ := sh.Parse(text, nil)
	for _, c := range list {
		if len(c.Words) < 2 || c.Words[0].Text != "echo" || c.Then == "&" || c.Then == "|" || c.Maybe {
			return
		}
		var said []string
		for _, word := range c.Words[1:] {
			said = append(said, word.Text)
		}
		if line := strings.Join(said, " "); log.MatchString(line) {
			a.warn(b.Server.Command.Range, b.Address.Name, "Ready before the server starts",
				"The command of the server of benchmark.%s prints %q before it starts the server, and log matches "+
					"that line. Write a log that matches a line of the server.", b.Address.Name, line)
			return
		}
	}
}

// endings warns of values that end with a line break, as those of a heredoc or a file do.
func (a *adviser) endings(b hclspec.Block, env map[string]hclspec.Text) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if len(value) == 0 {
			continue
		}
		if strings.HasSuffix(value[len(value)-1].Literal, "\n") && strings.Count(fmt.Sprint(value), "\n") == 1 {
			a.warn(b.Range, b.Address.Name+name, "Line break at the end of a value",
				"The value of %s in env of %s.%s ends with a line break, as a heredoc does. Write the value in "+
					"quotes, or chomp(VALUE).", name, b.Address.Kind, b.Address.Name)
		}
	}
}

// literal returns the text of a command without its references.
func literal(c hclspec.Command) string {
	if len(c.Shell) == 1 { // as most are
		return strings.TrimSpace(c.Shell[0].Literal)
	}
	var words []string
	for _, text := range append([]hclspec.Text{c.Shell}, c.Argv...) {
		var word string
		for _, part := range text {
			word += part.Literal
		}
		words = append(words, word)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
