package sh

import (
	"regexp"
	"strings"
	"sync"
)

// variableIn is a variable in a word, as $NAME or ${NAME}.
var variableIn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})`)
})

// Substitute replaces the variables that are known. All else stays as it is: ${name%.c} may be for a shell among the
// words.
func Substitute(word string, known func(name string) (string, bool)) string {
	return variableIn().ReplaceAllStringFunc(word, func(found string) string {
		if value, ok := known(strings.Trim(found, "${}")); ok {
			return value
		}
		return found
	})
}

// Quote makes one word of sh of a text, whatever is in it.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
