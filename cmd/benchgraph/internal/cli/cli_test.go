package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// recorder is a table whose commands record their calls.
type recorder struct {
	dir, format string
	follow      bool
	targets     List
	called      string
	args        []string
}

func (r *recorder) table() *Table {
	note := func(name string) func(context.Context, []string) error {
		return func(_ context.Context, args []string) error { r.called, r.args = name, args; return nil }
	}
	return &Table{
		Program: "prog", Summary: "prog does things.", Footer: "The end.\n",
		Global: func(fs *flag.FlagSet) {
			fs.StringVar(&r.dir, "chdir", "", "work in `DIR`")
			fs.StringVar(&r.format, "f", "", "read `FILE`")
		},
		Commands: []Command{
			{Name: "plan", Summary: "shows what would be done", Run: note("plan"), Flags: func(fs *flag.FlagSet) {
				fs.Var(&r.targets, "target", "only this `ADDRESS`")
			}},
			{Name: "logs", Args: "ADDR", Min: 1, Max: 1, Summary: "shows output", Run: note("logs"),
				Flags: func(fs *flag.FlagSet) {
					fs.BoolVar(&r.follow, "f", false, "follow")
				}},
			{Name: "compare", Args: "A B", Min: 2, Max: 2, Summary: "compares", Run: note("compare")},
		},
	}
}

func TestCommandLines(t *testing.T) {
	tests := []struct {
		line    string
		called  string
		args    string
		targets string
		dir     string
		format  string
		follow  bool
	}{
		{line: "plan", called: "plan"},
		{line: "-chdir=x plan", called: "plan", dir: "x"},
		{line: "--chdir x plan", called: "plan", dir: "x"},
		{line: "plan --chdir x -target a -target=b", called: "plan", dir: "x", targets: "a,b"},
		{line: "plan --f=y", called: "plan", format: "y"},
		{line: "-f y logs a.b -f", called: "logs", args: "a.b", format: "y", follow: true},
		{line: "logs -f a.b", called: "logs", args: "a.b", follow: true},
		{line: "logs -f=false a.b", called: "logs", args: "a.b"},
		{line: "logs -", called: "logs", args: "-"},
		{line: "logs -- -f", called: "logs", args: "-f"},
		{line: "compare a -chdir x b", called: "compare", args: "a b", dir: "x"},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			r := &recorder{}
			if err := r.table().Run(context.Background(), strings.Fields(test.line), io.Discard); err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(r.called, "|", strings.Join(r.args, " "), "|", &r.targets, "|", r.dir, "|", r.format, "|",
				r.follow)
			want := fmt.Sprint(test.called, "|", test.args, "|", test.targets, "|", test.dir, "|", test.format, "|",
				test.follow)
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ line, want string }{
		{"paln", `there is no command "paln"; did you mean "plan"?`},
		{"frobnicate", `there is no command "frobnicate"`},
		{"plan -tagret=x", `plan: there is no flag -tagret; did you mean "-target"?`},
		{"-chdri=x plan", `there is no flag -chdri; did you mean "-chdir"?`},
		{"plan -target", "plan: flag needs an argument: -target"},
		{"logs", "logs needs ADDR"},
		{"compare a", "compare needs A B"},
		{"plan extra", `plan: unexpected argument "extra"`},
		{"logs -f=maybe a", `plan: invalid boolean value`},
	}
	for _, test := range tests {
		err := (&recorder{}).table().Run(context.Background(), strings.Fields(test.line), io.Discard)
		var wrong *UsageError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v is no *UsageError", test.line, err)
			continue
		}
		want := strings.TrimPrefix(test.want, "plan: invalid")
		if !strings.Contains(err.Error(), want) || wrong.Remedy == "" {
			t.Errorf("%s: %q (%q), want %q and a remedy", test.line, err, wrong.Remedy, test.want)
		}
	}
}

func TestHelpNamesEverything(t *testing.T) {
	for _, line := range []string{"", "-help", "--help", "-h", "help"} {
		var b strings.Builder
		if err := (&recorder{}).table().Run(context.Background(), strings.Fields(line), &b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"plan", "shows output", "-chdir=DIR", "The end."} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("help by %q lacks %q:\n%s", line, want, &b)
			}
		}
	}
	for _, line := range []string{"help plan", "plan -h", "plan --help", "plan -target x -help"} {
		var b strings.Builder
		r := &recorder{}
		if err := r.table().Run(context.Background(), strings.Fields(line), &b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "-target=ADDRESS") || r.called != "" {
			t.Errorf("help by %q:\n%s", line, &b)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var b strings.Builder
		if err := (&recorder{}).table().Complete(&b, shell); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"compare", "target", "chdir"} {
			if !strings.Contains(b.String(), word) {
				t.Errorf("%s: no %s in\n%s", shell, word, &b)
			}
		}
	}
	if err := (&recorder{}).table().Complete(io.Discard, "csh"); err == nil {
		t.Error("csh: no error")
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"plan", "apply", "explain"}
	for word, want := range map[string]string{"pln": "plan", "aply": "apply", "explian": "explain", "zzz": ""} {
		got := Suggest(word, known)
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("Suggest(%s) = %q, want %q", word, got, want)
		}
	}
	if !slices.Equal(known, []string{"plan", "apply", "explain"}) {
		t.Error("the known words were changed")
	}
}
