// Package placeholder finds words in a command that stand for a value which the reader was meant to fill in.
package placeholder

import (
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// known returns words that stand for a value in the documentation of benchmarks. No other upper-case words count:
// commands are full of words that are meant literally, such as PING, GET or UTF-8.
func known() []string {
	return []string{
		"MODEL", "MODEL_NAME", "MODEL_PATH", "MODEL_ID", "BS", "BATCH_SIZE", "INPUT_LEN", "OUTPUT_LEN", "INPUT_LENGTH",
		"OUTPUT_LENGTH",
		"NUM_PROMPTS", "NUM_REQUESTS", "TP", "TP_SIZE", "PP_SIZE", "QPS", "RATE", "REQUEST_RATE", "CONCURRENCY",
		"MAX_CONCURRENCY",
		"DATASET", "DATASET_NAME", "DATASET_PATH", "TOKENIZER", "HOST", "PORT", "BASE_URL", "SEQ_LEN", "MAX_TOKENS",
		"NUM_GPUS",
	}
}

// Find returns the first word of a command that is a placeholder; empty: there is none.
func Find(words []string) string {
	known := known()
	begins, quiet := true, false
	for i, word := range words {
		switch {
		case begins && strings.Contains(word, "="):
			continue // an assignment before the command
		case begins:
			begins = false
			quiet = slices.Contains([]string{"export", "read", "unset", "local", "for", "grep", "egrep", "echo",
				"printf", "alias"}, word)
		}
		if separator(word) {
			begins, quiet = true, false
			continue
		}
		if quiet {
			continue
		}
		if bracketed().MatchString(word) {
			for _, next := range words[i+1:] {
				if strings.HasSuffix(word, "]") || separator(next) {
					break
				}
				word += " " + next
			}
			return word
		}
		value := word
		if _, after, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			value = after
		}
		if angled().MatchString(word) || slices.Contains(known, strings.Trim(value, "{}")) {
			return word
		}
		if opened().MatchString(word) && i+1 < len(words) && closed().MatchString(words[i+1]) {
			return word + " " + words[i+1]
		}
	}
	return ""
}

// separator reports whether a word ends a command and begins another.
func separator(word string) bool {
	return slices.Contains([]string{";", "|", "||", "&&", "&", "\n", "do", "then", "else", "{", "("}, word)
}

// Words splits a command at blanks outside of quotes. A quoted text of several words stays one word, so that its
// content is not mistaken for arguments; quotes around a single word are removed.
func Words(command string) []string {
	var words []string
	var word strings.Builder
	quote := rune(0)
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote = c
		case c == '\n' || c == ';' || c == '|' || c == '&':
			flush()
			words = append(words, string(c))
		case c == ' ' || c == '\t' || c == '\r' || c == '\\':
			flush()
		default:
			word.WriteRune(c)
		}
	}
	flush()
	return words
}

var (
	angled    = lazyregexp.New(`^(?:--?[\w-]+=)?<[A-Za-z][\w-]*>$`)
	opened    = lazyregexp.New(`^<[A-Za-z][\w-]*$`)
	closed    = lazyregexp.New(`^[\w-]+>$`)
	bracketed = lazyregexp.New(`^\[--?[A-Za-z]`)
)
