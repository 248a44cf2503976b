package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/pick"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// projectWords are the placeholders for which a project has words.
var projectWords = []string{"ADDR", "ADDRESS", "ATTEMPT", "BENCHMARK", "CANDIDATE", "COMMIT", "COMPARE", "METRIC"}

func (a *app) completion() cli.Command {
	words := ""
	return cli.Command{
		Name: "completion", Args: "[bash|zsh|fish|man]", Max: -1,
		Summary: "print a completion script for a shell, or the manual page",
		Long: "For bash: source <(benchgraph completion bash), for example in ~/.bashrc; for zsh: source " +
			"<(benchgraph completion zsh);\n" +
			"for fish: benchgraph completion fish | source. The scripts ask benchgraph itself for the names of a " +
			"project.\n" +
			"The manual page: benchgraph completion man >benchgraph.1.",
		Flags: func(fs *flag.FlagSet) {
			fs.StringVar(&words, "words", "",
				"list the words of the project for `PLACEHOLDER`: "+strings.Join(projectWords, ", "))
		},
		Run: func(ctx context.Context, args []string) error {
			if words == "" && len(args) != 1 {
				return &cli.UsageError{Message: "completion needs bash, zsh, fish or man, or -words",
					Remedy: "try benchgraph help completion"}
			}
			if words != "" {
				return a.listWords(ctx, words, args)
			}
			return a.table.Complete(a.stdout, args[0])
		},
	}
}

// plainWord matches words without a meaning to a shell. Completion scripts pass words to their shell, and anybody may
// have chosen the names in files.
var plainWord = lazyregexp.New(`^[A-Za-z0-9._/@#+:,\[\]-]+$`)

// listWords prints words of the project, one a line, except words with a meaning to a shell.
func (a *app) listWords(ctx context.Context, placeholder string, typed []string) error {
	if !slices.Contains(projectWords, placeholder) {
		return &cli.UsageError{
			Message: fmt.Sprintf("no words stand for %s%s", placeholder, cli.Suggest(placeholder, projectWords)),
			Remedy:  "try benchgraph help completion"}
	}
	words, err := a.wordsFor(ctx, placeholder, typed)
	if err != nil {
		return err
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if plainWord().MatchString(word) {
			fmt.Fprintln(a.stdout, word)
		}
	}
	return nil
}

// wordsFor returns the words for a placeholder after the arguments that were typed so far.
func (a *app) wordsFor(ctx context.Context, placeholder string, typed []string) (words []string, err error) {
	if placeholder == "ADDR" || placeholder == "ADDRESS" || placeholder == "ATTEMPT" {
		s, err := a.open(ctx, access{offline: true, recall: recallNodes, deviceless: true})
		if err != nil {
			return nil, err
		}
		defer s.close()
		p, _, err := s.project.AsMeasured(ctx)
		if err != nil {
			return nil, err
		}
		if placeholder == "ATTEMPT" {
			if len(typed) == 0 {
				return nil, nil
			}
			st, err := pick.Node(p, typed[0])
			if err != nil {
				return nil, err
			}
			for i := range s.attempts(st, s.underWay().Running) {
				words = append(words, strconv.Itoa(i+1))
			}
			return words, nil
		}
		for i := range p.Steps {
			words = append(words, strings.ReplaceAll(p.Steps[i].Node.Address, `"`, "")) // quotes are optional
		}
		return words, nil
	}
	at, err := a.place()
	if err != nil {
		return nil, err
	}
	options, err := a.pinned(at)
	if err != nil {
		return nil, err
	}
	spec, files, diags := hclspec.Load(options)
	if diags.HasErrors() {
		return nil, &diagError{diags, files}
	}
	return pick.Words(spec, placeholder), nil
}
