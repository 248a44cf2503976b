package funcs

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// regexCost goes by the length of the text and the size of the program that the pattern is compiled to. RE2 takes their
// product at most for one match. A search for all matches begins again after each, and may have gone on to the end of a
// run of repeated characters before.
func regexCost(m *Meter, pattern, text string, all bool) (matches, groups int) {
	m.Work(len(pattern) * 20)
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return // told by the function
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return
	}
	n, size := utf8.RuneCountInString(text), len(program.Inst)
	m.Work(size * 20)
	m.Work((n/4 + 1) * size)
	if !all {
		return
	}
	loops := repeated(parsed, nil)
	far := min(n, size+(len(loops)+1)*longestRun(text, loops))
	m.Work((n/4 + 1) * size * far)
	re, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	re.ReplaceAllStringFunc(text, func(string) string {
		matches++
		return ""
	})
	m.Work(4 * matches)
	return matches, re.NumSubexp()
}

func regexallCost(m *Meter, args []cty.Value) {
	matches, groups := regexCost(m, args[0].AsString(), args[1].AsString(), true)
	m.Elements(matches * (1 + groups))
}

func regexreplaceCost(m *Meter, args []cty.Value) {
	text, by := args[0].AsString(), args[2].AsString()
	matches, _ := regexCost(m, args[1].AsString(), text, true)
	m.Bytes(len(text))
	m.Bytes(matches * len(by))
	m.Bytes(len(text) * strings.Count(by, "$"))
}

// repeated are the expressions in re that can be repeated without end.
func repeated(re *syntax.Regexp, found []*syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 {
		return append(found, re)
	}
	for _, sub := range re.Sub {
		found = repeated(sub, found)
	}
	return found
}

// longestRun is the longest part of the text, in characters, that has nothing but what the loops can repeat.
func longestRun(text string, loops []*syntax.Regexp) int {
	classes := map[rune]bool{}
	longest, run := 0, 0
	for _, c := range text {
		in, known := classes[c]
		if !known {
			for _, loop := range loops {
				in = in || takes(loop, c)
			}
			classes[c] = in
		}
		if run++; !in {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// takes says whether the expression can match a text with the character in it.
func takes(re *syntax.Regexp, c rune) bool {
	switch re.Op {
	case syntax.OpAnyChar:
		return true
	case syntax.OpAnyCharNotNL:
		return c != '\n'
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= c && c <= re.Rune[i+1] {
				return true
			}
		}
	case syntax.OpLiteral:
		return re.Flags&syntax.FoldCase != 0 || strings.ContainsRune(string(re.Rune), c)
	}
	for _, sub := range re.Sub {
		if takes(sub, c) {
			return true
		}
	}
	return false
}
