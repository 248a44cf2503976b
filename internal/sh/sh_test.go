package sh_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchgraph/benchgraph/internal/sh"
)

// words are the texts of a command, with | before what is only known when it runs.
func words(c sh.Command) string {
	var all []string
	for _, w := range c.Words {
		text := w.Text
		if w.Partial {
			text = "|" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestCommandsAreRead(t *testing.T) {
	list, ok := sh.Parse("A=1 prog --x $KNOWN $PORT > out &&\nif test -f x; then cd sub; other 'a b' $NONE; fi",
		map[string]sh.Word{"KNOWN": {Text: "k"}})
	if !ok || len(list) != 4 {
		t.Fatalf("%v, %+v", ok, list)
	}
	prog, test, cd, other := list[0], list[1], list[2], list[3]
	if words(prog) != "prog --x k |$PORT" || prog.Assigns["A"].Text != "1" || prog.Then != "&&" || prog.Maybe ||
		!slices.Equal(prog.Writes, []string{"out"}) {
		t.Errorf("%+v", prog)
	}
	if words(test) != "test -f x" || words(cd) != "cd sub" || words(other) != "other a b |$NONE" || !other.Maybe ||
		!slices.Equal(other.Words[2].Unset, []string{"NONE"}) {
		t.Errorf("%+v", list[1:])
	}
}

func TestConditionsAndDeclarations(t *testing.T) {
	if list, ok := sh.Parse("[[ -f x ]] && ((n++)); prog", nil); !ok || len(list) != 3 || list[0].Then != "&&" {
		t.Errorf("%v, %+v", ok, list)
	}
	list, ok := sh.Parse("case $1 in\na|b) cd x; one \"\\$A\\b\" ;;\n*) two [a-z]* ;;\nesac\n"+
		"export B=1 C\n! three $B\\$ ${D:-4} $C &\n", nil)
	if !ok || len(list) != 5 {
		t.Fatalf("%v, %+v", ok, list)
	}
	one, two, three := list[1], list[2], list[4]
	if words(one) != `one $A\b` || !one.Maybe || !one.Lost || words(two) != "two |[a-z]*" || !two.Maybe {
		t.Errorf("%+v, %+v", one, two)
	}
	if words(list[3]) != "export B=1 C" || words(three) != "three 1$ 4 |" || !three.Not || three.Maybe ||
		three.Then != "&" {
		t.Errorf("%+v", list[3:])
	}
}

func TestForeignSyntaxIsRefused(t *testing.T) {
	for _, text := range []string{"f() { prog; }; f", "if prog", "! a | b", "prog <(b)", "a[1]=2 prog", "x=(1)",
		"for ((;;)); do prog; done", strings.Repeat("x", 2<<20)} {
		if list, ok := sh.Parse(text, nil); ok {
			t.Errorf("%.40q: %+v", text, list)
		}
	}
}

// Without a shell, a blank or an operator in a word is a part of it.
func TestAListIsOneCommand(t *testing.T) {
	list := sh.ParseArgv([]string{"prog", "a; b", "$PORT", sh.Ref + "wheel.x" + sh.RefEnd}, nil)
	if len(list) != 1 || len(list[0].Words) != 4 || list[0].Words[1].Text != "a; b" || !list[0].Words[2].Partial {
		t.Errorf("%+v", list)
	}
}
