// Package attribute reads the attributes of executor blocks.
package attribute

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// Reader reads the value of an attribute. It returns why the value is wrong; "" if it is right.
type Reader func(json.RawMessage) string

// Text reads any text.
func Text(to *string) Reader {
	return func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || strings.ContainsAny(*to, "\x00\r") {
			return "a text is expected"
		}
		return ""
	}
}

func isWord(text string) bool {
	return text != "" && !strings.HasPrefix(text, "-") && !strings.ContainsAny(text, " \t\n")
}

// Word reads a text without spaces. whose names the program that gets it: "as sbatch takes it".
func Word(to *string, whose string) Reader {
	return func(raw json.RawMessage) string {
		if why := Text(to)(raw); why != "" {
			return why
		}
		if !isWord(*to) {
			return "a text without spaces is expected, " + whose
		}
		return ""
	}
}

// Words reads a list of texts without spaces.
func Words(to *[]string, whose string) Reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for _, word := range *to {
			ok = ok && isWord(word)
		}
		if !ok {
			return "a list of texts without spaces is expected, " + whose
		}
		return ""
	}
}

// Absolute reads an absolute path.
func Absolute(to *string) Reader {
	return func(raw json.RawMessage) string {
		if Text(to)(raw) != "" || !path.IsAbs(*to) || path.Clean(*to) == "/" {
			return "an absolute path is expected, which the nodes see under the same name"
		}
		return ""
	}
}

// Number reads a whole number of at least 1.
func Number(to *int) Reader {
	return func(raw json.RawMessage) string {
		if json.Unmarshal(raw, to) != nil || *to < 1 || *to > 1<<20 {
			return "a whole number of at least 1 is expected"
		}
		return ""
	}
}

// Image reads the name of an image with its digest.
func Image(to *string) Reader {
	return func(raw json.RawMessage) string {
		ok := false
		if Text(to)(raw) == "" {
			if name, err := reference.ParseNormalizedNamed(*to); err == nil {
				_, ok = name.(reference.Digested)
			}
		}
		if !ok {
			return `an image by its digest is expected, such as "ghcr.io/org/bench@sha256:…"; a tag may name ` +
				"another one tomorrow"
		}
		return ""
	}
}

// GPU reads the kind of a GPU, without a number.
func GPU(to *string) Reader {
	return func(raw json.RawMessage) string {
		if Text(to)(raw) != "" || !isWord(*to) || strings.Contains(*to, ":") {
			return `the kind of a GPU is expected, such as "H100"; what is measured says how many`
		}
		return ""
	}
}

// Volumes reads names of volumes, by the path at which each is mounted.
func Volumes(to *map[string]string) Reader {
	return func(raw json.RawMessage) string {
		ok := json.Unmarshal(raw, to) == nil
		for at, name := range *to {
			ok = ok && path.IsAbs(at) && path.Clean(at) == at && at != "/" && isWord(name)
		}
		if !ok {
			return `names of volumes by absolute path are expected, such as { "/models" = "models" }`
		}
		return ""
	}
}
