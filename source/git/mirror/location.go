package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// kind is the kind of a location.
type kind int

const (
	remote     kind = iota // reached through a transport
	repository             // a repository on this machine, whose objects are borrowed
	bundle                 // a file that git bundle wrote
)

// local is a repository on this machine.
type local struct {
	dir     string // directory of the repository (.git or bare), absolute
	objects string // directory of its objects, absolute
	shallow bool
	// URL from which a partial clone gets its missing objects; empty: no partial clone
	promisor string
}

var (
	control = lazyregexp.New(`[\x00-\x1f\x7f]`)
	scpLike = lazyregexp.New(`^([^/:@]+@)?[^/:]+:[^/]?`)
)

// kindOf returns the kind of a location, or an error if it is invalid.
func kindOf(location string) (kind, error) {
	switch {
	case location == "":
		return 0, errors.New("no location")
	case strings.HasPrefix(location, "-") || control().MatchString(location):
		return 0, errors.New("location begins with a dash or holds control characters")
	}
	if scheme, _, ok := strings.Cut(location, "://"); ok {
		switch scheme {
		case "http", "https", "ssh", "git", "file":
			return remote, nil
		}
		return 0, fmt.Errorf("transport %q is not one of http, https, ssh, git, file", scheme)
	}
	info, err := os.Stat(location)
	switch {
	case err == nil && info.IsDir():
		return repository, nil
	case err == nil && info.Mode().IsRegular():
		return bundle, checkBundle(location)
	case err == nil:
		return 0, errors.New("neither a directory nor a file")
	case errors.Is(err, os.ErrNotExist) && scpLike().MatchString(location) && !strings.Contains(location, "::"):
		return remote, nil
	case errors.Is(err, os.ErrNotExist):
		return 0, errors.New("there is nothing at this path")
	}
	return 0, err
}

// checkBundle returns an error if a file is no bundle.
func checkBundle(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len("# v2 git bundle\n"))
	if _, err := io.ReadFull(f, head); err != nil || !regexp.MustCompile(`^# v[23] git bundle\n$`).Match(head) {
		return errors.New("the file is not a git bundle")
	}
	return nil
}

// redact returns the location without its password, and the password.
func redact(location string) (shown string, secrets []string) {
	u, err := url.Parse(location)
	if err != nil || u.User == nil {
		return location, nil
	}
	if password, ok := u.User.Password(); ok && password != "" {
		secrets = append(secrets, password)
	} else if !ok && (u.Scheme == "http" || u.Scheme == "https") {
		// A lone user name in an http URL is usually a token.
		secrets = append(secrets, u.User.Username())
		u.User = url.User("xxxxx")
	}
	return u.Redacted(), secrets
}

// inspect finds the parts of a repository on this machine.
func (m *Mirror) inspect(ctx context.Context) (local, error) {
	path, err := filepath.Abs(m.location)
	if err != nil {
		return local{}, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return local{}, fmt.Errorf("repository %s: %w", m.Shown, err)
	}
	gitDir := filepath.Join(path, ".git")
	if _, err := os.Lstat(gitDir); err != nil {
		gitDir = path // bare
	}
	if _, err := os.Stat(filepath.Join(gitDir, "HEAD")); errors.Is(err, os.ErrPermission) { // git: no repository
		return local{}, fmt.Errorf("repository %s: you may not read it: %w", m.Shown, err)
	}
	out, err := m.Git.Output(ctx, command.Call{
		Args: []string{"rev-parse", "--path-format=absolute", "--git-common-dir", "--git-path", "objects",
			"--show-object-format"},
		Env: foreign(gitDir),
	})
	if _, ok := errors.AsType[*command.ExitError](err); ok {
		return local{}, fmt.Errorf("repository %s: not a git repository (wanted: the top of a work tree, a bare "+
			"repository or a bundle): %w", m.Shown, err)
	}
	if err != nil {
		return local{}, err
	}
	out, isSHA1 := strings.CutSuffix(out, "\nsha1\n")
	if !isSHA1 {
		return local{}, fmt.Errorf("repository %s: its commits are named by SHA-256, and benchgraph knows those of "+
			"SHA-1 alone", m.Shown)
	}
	common, objects, _ := strings.Cut(out, "\n")
	l := local{dir: gitDir, objects: objects}
	if control().MatchString(l.objects) {
		return local{}, fmt.Errorf("repository %s: its path holds control characters", m.Shown)
	}
	_, err = os.Stat(filepath.Join(common, "shallow"))
	l.shallow = err == nil
	l.promisor, err = m.promisor(ctx, l)
	return l, err
}

// promisor returns the URL from which git would fetch the objects that a repository on this machine lacks, or "" if
// the repository is no partial clone.
func (m *Mirror) promisor(ctx context.Context, l local) (string, error) {
	promised, err := filepath.Glob(filepath.Join(l.objects, "pack", "*.promisor"))
	if err != nil || len(promised) == 0 {
		return "", err
	}
	out, err := m.Git.Output(ctx, command.Call{
		Args: []string{"config", "-z", "--get-regexp", `^remote\..*\.(url|promisor|partialclonefilter)$`},
		Env:  foreign(l.dir), OK: []int{1}, // 1: no such setting
	})
	if err != nil {
		return "", fmt.Errorf("repository %s: %w", m.Shown, err)
	}
	urls, promisors := map[string]string{}, []string{}
	for setting := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		name, value, _ := strings.Cut(setting, "\n")
		switch remote, last := name[:max(0, strings.LastIndexByte(name, '.'))], filepath.Ext(name); {
		case last == ".url":
			urls[remote] = cmp.Or(urls[remote], value)
		case last == ".partialclonefilter" || value != "false":
			promisors = append(promisors, remote)
		}
	}
	for _, name := range promisors {
		if k, err := kindOf(urls[name]); err == nil && k == remote {
			_, secrets := redact(urls[name])
			m.Git.Secrets = append(m.Git.Secrets, secrets...)
			return urls[name], nil
		}
	}
	return "", nil
}

// foreign returns the environment in which git works in a foreign repository, whose configuration then applies. Since
// the configuration could name a program that fetches missing objects, nothing may be fetched.
func foreign(dir string) []string {
	return []string{"GIT_DIR=" + dir, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}
}

// followLocal copies the current refs of the repository on this machine. Its objects are borrowed.
func (m *Mirror) followLocal(ctx context.Context) error {
	env := foreign(m.local.dir)
	refs, err := m.Git.Output(ctx, command.Call{Args: []string{"for-each-ref", "--format=%(objectname) %(refname)"},
		Env: env})
	if err != nil {
		return fmt.Errorf("repository %s: %w", m.Shown, err)
	}
	// A repository without a commit has no HEAD.
	head, err := m.Git.Output(ctx, command.Call{Args: []string{"rev-parse", "--quiet", "--verify", "HEAD^{commit}"},
		Env: env, OK: []int{1, 128}})
	if err != nil {
		return fmt.Errorf("repository %s: %w", m.Shown, err)
	}
	text := strings.Builder{}
	if h := strings.TrimSpace(head); IsHash(h) {
		fmt.Fprintf(&text, "%s %s\n", h, headRef)
	}
	for line := range strings.Lines(refs) {
		if !strings.HasSuffix(line, " "+headRef+"\n") {
			text.WriteString(line)
		}
	}
	// Written as one file: update-ref would write a file for each of thousands of refs.
	return m.exclusively(ctx, func() error {
		return fs.Replace(filepath.Join(m.Dir, "packed-refs"), []byte(text.String()))
	})
}
