package sh

import (
	"regexp"
	"strings"
	"sync"
)

// variableIn matches a variable in a word: $NAME or ${NAME}.
var variableIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)
})

// Substitute replaces known variables. Everything else stays: ${name%.c} may be meant for a shell in the command.
func Substitute(word string, known func(name string) (string, bool)) string {
	return variableIn().ReplaceAllStringFunc(word, func(found string) string {
		if value, ok := known(strings.Trim(found, "${}")); ok {
			return value
		}
		return found
	})
}

// Quote returns a text as one word of sh.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
