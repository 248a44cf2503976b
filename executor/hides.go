package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// private are directories whose content the system keeps for single users or daemons.
var private = []string{"/home", "/root", "/run"}

var (
	unreachable = lazyregexp.New(`(?i)could not resolve|name resolution|no such host|name or service not known|` +
		`NameResolutionError|getaddrinfo|network is unreachable|ENETUNREACH|` +
		`lookup \S+.*(connection refused|timeout|misbehaving)`)
	refusedHere = lazyregexp.New(`(?i)connection ?refused|ECONNREFUSED`)
	readOnly    = lazyregexp.New(`(?i)read-only file ?system|EROFS`)
	missingHere = lazyregexp.New(`(?i)no such file|not found|does not exist|cannot (access|open|find)|ENOENT|` +
		`permission denied|EACCES`) // Landlock denies access instead of hiding files
)

// Explains returns what a failed program lacked in the sandbox ("network" or "files") and the remedy, judged by the
// last words of its output. dir and env are those of the program. If lacked is empty but remedy is not, the sandbox
// is one possible cause among others.
func (o *Sandbox) Explains(words, dir string, env []string) (lacked, remedy string) {
	switch {
	case !o.Network && unreachable().MatchString(words):
		return "network", "the command ran in a sandbox without a network: say network = true in its block"
	case !o.Network && o.Beside == nil && refusedHere().MatchString(words): // or its own server has died
		return "", "in a sandbox, services of this machine are there only with network = true in the block"
	case readOnly().MatchString(words):
		return "files", "in a sandbox, a command can write to its directory, $OUT, $HOME and /tmp: write there, " +
			"declare a mount with read_only = false, or say sandbox = \"none\""
	case missingHere().MatchString(words):
		if path := o.missing(words, dir, env); path != "" {
			return "files", "the sandbox of the command hides " + path +
				": declare a mount that holds it, or say sandbox = \"none\""
		}
	}
	return "", ""
}

// missing returns the first path in a text that exists on this machine and is hidden by the sandbox. A word without a
// slash may be a program in PATH. It returns "" if there is no such path.
func (o *Sandbox) missing(text, dir string, env []string) string {
	hidden := slices.Concat(private, []string{"/tmp", "/var/tmp", "/dev/shm"}, o.Hidden)
	var programs []string
	for _, v := range env {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "PATH":
			programs = filepath.SplitList(value)
		case "HOME":
			hidden = append(hidden, value)
		}
	}
	hides := func(path string) bool {
		return filepath.IsAbs(path) && !fs.Below(path, dir) &&
			!slices.ContainsFunc(o.Shown, func(m Mount) bool { return fs.Below(path, m.Host) }) &&
			slices.ContainsFunc(hidden, func(dir string) bool { return fs.Below(path, dir) })
	}
	separates := func(r rune) bool { return strings.ContainsRune(" \t'\"`:,;()[]<>", r) }
	for _, word := range strings.FieldsFunc(text, separates) {
		paths := []string{filepath.Clean(word)}
		if !strings.ContainsRune(word, filepath.Separator) {
			paths = nil
			for _, dir := range programs {
				paths = append(paths, filepath.Join(dir, word))
			}
		}
		for _, path := range paths {
			if _, err := os.Stat(path); err == nil && hides(path) {
				return path
			}
		}
	}
	return ""
}
