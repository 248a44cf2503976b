package shell

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/executor"
)

// The rules of failures that a sandbox explains.
const (
	ruleNetwork = "sandbox_network"
	ruleFiles   = "sandbox_files"
)

var (
	unreachable = regexp.MustCompile(`(?i)could not resolve|name resolution|no such host|name or service not known|` +
		`NameResolutionError|getaddrinfo|network is unreachable|ENETUNREACH|` +
		`lookup \S+.*(connection refused|timeout|misbehaving)`)
	refusedHere = regexp.MustCompile(`(?i)connection ?refused|ECONNREFUSED`)
	readOnly    = regexp.MustCompile(`(?i)read-only file ?system|EROFS`)
	missingHere = regexp.MustCompile(`(?i)no such file|not found|does not exist|cannot (access|open|find)|ENOENT`)
)

// explainHidden corrects a failure whose evidence tells of something that this machine has and the sandbox of the command
// hides. Rules do not know of sandboxes: by them, a name that does not resolve is worth another attempt.
func (s *Shell) explainHidden(f *engine.Failure) {
	if s.cell == nil || f.Evidence == "" {
		return
	}
	rule, remedy := "", ""
	switch text := f.Evidence; {
	case !s.cell.Network && unreachable.MatchString(text):
		rule, remedy = ruleNetwork, "the command ran in a sandbox without a network: say network = true in its block"
	case !s.cell.Network && s.cell.Beside == nil && refusedHere.MatchString(text):
		// A server of the command's own may have died as well, so the rule stays.
		const remedy = "in a sandbox, services of this machine are there only with network = true in the block"
		if f.Remedy != "" {
			f.Remedy += "; "
		}
		f.Remedy += remedy
	case readOnly.MatchString(text):
		rule = ruleFiles
		remedy = "in a sandbox, a command can write to its directory, $OUT, $HOME and /tmp: write there, " +
			"declare a mount with read_only = false, or say sandbox = \"none\""
	case missingHere.MatchString(text):
		if path := s.hiddenIn(text); path != "" {
			rule = ruleFiles
			remedy = "the sandbox of the command hides " + path + ": declare a mount that holds it, or say sandbox = \"none\""
		}
	}
	if rule != "" {
		f.Class, f.Rule, f.Remedy, f.Retry = cache.Permanent, rule, remedy, nil
	}
}

// hiddenIn returns the first path in a text that this machine has and the sandbox hides; a bare word may be a program of
// the PATH. It is empty if there is none.
func (s *Shell) hiddenIn(text string) string {
	seen := s.cell.sandbox()
	seen.Shown = append(seen.Shown, executor.Mount{Host: s.dir})
	var dirs []string
	for _, v := range s.environ() {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "PATH":
			dirs = filepath.SplitList(value)
		case "HOME":
			seen.Hidden = append(slices.Clip(seen.Hidden), value)
		}
	}
	separates := func(r rune) bool { return strings.ContainsRune(" \t'\"`:,;()[]<>", r) }
	for _, word := range strings.FieldsFunc(text, separates) {
		paths := []string{word}
		if !strings.ContainsRune(word, filepath.Separator) {
			paths = nil
			for _, dir := range dirs {
				paths = append(paths, filepath.Join(dir, word))
			}
		}
		for _, path := range paths {
			if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) && seen.Covers(filepath.Clean(path)) {
				return path
			}
		}
	}
	return ""
}
