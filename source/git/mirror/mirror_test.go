package mirror

import (
	"testing"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/source/git/command"
)

func TestGitsWordsAreClassified(t *testing.T) {
	m := &Mirror{}
	for stderr, want := range map[string]failure.Class{
		"fatal: unable to access 'https://x/': Could not resolve host: x":                           failure.Transient,
		"fatal: unable to access 'https://x/': Failed to connect to x port 443: Connection refused": failure.Transient,
		"error: RPC failed; curl 56 GnuTLS recv error (-54)\nfatal: early EOF":                      failure.Transient,
		"fatal: the remote end hung up unexpectedly":                                                failure.Transient,
		"git@x: Permission denied (publickey).\nfatal: Could not read from remote repository.":      failure.Permanent,
		"Host key verification failed.\nfatal: the remote end hung up unexpectedly":                 failure.Permanent,
		"remote: Repository not found.\nfatal: repository 'https://x/' not found":                   failure.Permanent,
		"error: file write error: No space left on device\nfatal: the remote end hung up":           failure.Infra,
		"fatal: something nobody has seen before":                                                   failure.Permanent,
		"error: Repository lacks these prerequisite commits:\nerror: 1234 message":                  failure.Permanent,
	} {
		if got := m.classify(&command.ExitError{Verb: "fetch", Status: executor.Status{Code: 128},
			Stderr: stderr}); got.Class != want || got.Evidence == "" {
			t.Errorf("%q is %s (%s), want %s", stderr, got.Class, got.Evidence, want)
		}
	}
}

func TestHostsOfLocations(t *testing.T) {
	for location, want := range map[string]string{
		"https://git.example.org/x.git":     "git.example.org:443",
		"http://u:p@git.example.org:8080/x": "git.example.org:8080",
		"git://[2001:db8::1]/x":             "[2001:db8::1]:9418",
		"ssh://git@git.example.org/x":       "",
		"git@git.example.org:x":             "",
		"file:///srv/x":                     "",
	} {
		m := &Mirror{location: location}
		if got := m.address(); got != want {
			t.Errorf("%s: %q, want %q", location, got, want)
		}
		m.Git.Env = []string{"https_proxy=http://proxy:3128"}
		if got := m.address(); got != "" {
			t.Errorf("%s behind a proxy: %q", location, got)
		}
	}
}

func TestPasswordsOfLocationsAreNotShown(t *testing.T) {
	for location, shown := range map[string]string{
		"https://me:secret@example.com/x.git": "https://me:xxxxx@example.com/x.git",
		"https://token@example.com/x.git":     "https://xxxxx@example.com/x.git",
		"git@example.com:x/y.git":             "git@example.com:x/y.git",
		"ssh://git@example.com/x":             "ssh://git@example.com/x",
	} {
		if got, _ := redact(location); got != shown {
			t.Errorf("%s is shown as %s", location, got)
		}
	}
}
