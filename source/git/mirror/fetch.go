package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/lazyregexp"
	"github.com/benchgraph/benchgraph/source/git/command"
)

// FetchError is the error for a repository that could not be fetched. Transient failures have already been retried.
type FetchError struct {
	Location string
	Class    failure.Class
	Evidence string // git's message
	Remedy   string // may be empty
	Err      error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("repository %s: %s", e.Location, e.Evidence)
}

func (e *FetchError) Unwrap() error { return e.Err }

// MissingObjects is the error if a repository on this machine, or a bundle, lacks objects of a commit.
type MissingObjects struct {
	Location string
	Object   string // first missing object
	Count    int
	Remedy   string
}

func (e *MissingObjects) Error() string {
	return fmt.Sprintf("repository %s: %d objects are missing, the first is %s; %s", e.Location, e.Count, e.Object,
		e.Remedy)
}

// errOffline is the reason why nothing was fetched.
var errOffline = errors.New("not in the mirror, and offline")

const fetchAttempts = 4

// Fetch updates the mirror from its location: all branches and tags, and the names in revs.
func (m *Mirror) Fetch(ctx context.Context, revs ...string) error {
	return m.FetchNamed(ctx, revs, true)
}

// fetchRefs fetches all branches and tags and the extra refspecs. Unless again is set, it does so only once in the
// life of the Mirror.
func (m *Mirror) fetchRefs(ctx context.Context, extra []string, again bool) error {
	what := "refs " + strings.Join(extra, " ")
	m.mu.Lock()
	// held while fetching: other callers wait for this fetch instead of starting one
	defer m.mu.Unlock()
	if m.fetched[what] && !again {
		return nil
	}
	var err error
	if m.kind == repository {
		err = m.followLocal(ctx)
	} else {
		err = m.fetch(ctx, allRefs(extra))
	}
	if err == nil {
		m.fetched[what] = true
	}
	return err
}

// Lacks reports whether a fetch may bring contents that the mirror lacks.
func (m *Mirror) Lacks() bool { return m.url() != "" }

// url returns the source of missing objects: the location, or the server of a partial clone on this machine; empty if
// nothing is fetched.
func (m *Mirror) url() string {
	if m.kind == remote {
		return m.location
	}
	return m.local.promisor
}

// FetchObjects fetches single objects by their hashes.
func (m *Mirror) FetchObjects(ctx context.Context, ids []string) error {
	if !m.Lacks() {
		return m.incomplete(ids)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// Negotiation only costs time for single objects.
	err := m.fetch(ctx, want{specs: ids, config: []string{"fetch.negotiationAlgorithm", "noop"}})
	fe, ok := errors.AsType[*FetchError](err)
	if !ok || !objectsRefused().MatchString(fe.Evidence) || m.entire || m.kind != remote {
		return err
	}
	// The server leaves objects out and does not send them later, but it sends everything without a filter.
	m.entire = true
	return m.fetch(ctx, allRefs(nil))
}

// incomplete is the error for objects that a repository or a bundle on this machine should have.
func (m *Mirror) incomplete(ids []string) error {
	remedy := "the bundle needs to hold the whole history"
	if m.kind == repository {
		remedy = "it is a partial or damaged clone: complete it with \"git fetch --refetch --no-filter\", or name " +
			"the URL it came from"
		if m.local.shallow {
			remedy = "it is a shallow clone: complete it with \"git fetch --unshallow\", or name the URL it came from"
		}
	}
	return &MissingObjects{Location: m.Shown, Object: ids[0], Count: len(ids), Remedy: remedy}
}

// objectsRefused matches git's messages about a server that does not send single objects.
var objectsRefused = lazyregexp.New(`(?i)not our ref|unadvertised object|not advertised|missing necessary objects`)

// allRefs returns a request for all branches and tags, and for extra refspecs.
func allRefs(extra []string) want {
	return want{flags: []string{"--prune", "--force"},
		specs: append([]string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}, extra...)}
}

// want is the request of one fetch.
type want struct {
	flags  []string
	specs  []string // refspecs or hashes
	config []string // names and values, alternating
}

// fetch runs git fetch until it succeeds, fails permanently, or has failed too often.
func (m *Mirror) fetch(ctx context.Context, w want) error {
	if m.Offline && m.Lacks() {
		return &FetchError{Location: m.Shown, Class: failure.Permanent, Evidence: errOffline.Error(),
			Remedy: "run without -offline once", Err: errOffline}
	}
	filter := m.Lacks() && !m.entire
	pause, begun := m.Backoff, time.Now()
	for attempt := 1; ; attempt++ {
		err := m.reach(ctx)
		if err == nil {
			err = m.exclusively(ctx, func() error { return m.fetchAs(ctx, w, filter) })
		}
		var exit *command.ExitError
		fe, unreached := errors.AsType[*FetchError](err)
		if err == nil || !unreached && !errors.As(err, &exit) {
			return err
		}
		if exit != nil {
			if filter && filterRefused().MatchString(exit.Stderr) {
				filter = false
				continue
			}
			fe = m.classify(exit)
		}
		if fe.Class != failure.Transient || attempt >= fetchAttempts || unreached && attempt >= reachAttempts ||
			time.Since(begun) > retryTime {
			return fe
		}
		fmt.Fprintf(m.Git.Log, "fetch of %s: %s; attempt %d of %d follows in about %v\n", m.Shown, fe.Evidence,
			attempt+1, fetchAttempts, pause)
		select {
		case <-ctx.Done():
			return fmt.Errorf("fetch of %s: %w", m.Shown, context.Cause(ctx))
		case <-time.After(pause + rand.N(pause/4+1)):
		}
		pause *= 2
	}
}

// fetchAs is fetchOnce for a partial mirror, if filter is set and the server supports it, or for a complete one.
func (m *Mirror) fetchAs(ctx context.Context, w want, filter bool) error {
	if filter {
		offered, err := m.filters(ctx)
		if err != nil {
			return err
		}
		filter = offered
	}
	if m.kind == remote && !filter {
		if err := m.startOver(ctx); err != nil {
			return err
		}
	}
	return m.fetchOnce(ctx, w, filter)
}

// fetchOnce runs git fetch once. Only the environment describes the remote: the mirror's configuration contains no
// URL, which may hold a token, and no promisor, so that reading commands report missing objects instead of fetching
// them one by one.
func (m *Mirror) fetchOnce(ctx context.Context, w want, filter bool) error {
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
		"--update-shallow"}, // accept a shallow repository as it is
		w.flags...)
	config := append([]string{
		"core.fsync", "all", "core.fsyncMethod", "batch", // older gits sync only packs
	}, w.config...)
	if filter {
		args = append(args, "--filter=blob:none")
		config = append(config, "remote.origin.promisor", "true", "remote.origin.partialclonefilter", "blob:none")
	}
	_, err := m.Git.Output(ctx, command.Call{
		Args:  append(args, "--stdin", "origin"),
		Stdin: strings.Join(w.specs, "\n") + "\n",
		Env:   m.remoteEnv(config...),
	})
	return err
}

// remoteEnv returns the environment that configures the remote and further settings of one call. config has names and
// values, alternating.
func (m *Mirror) remoteEnv(config ...string) []string {
	config = append([]string{"remote.origin.url", cmp.Or(m.url(), m.location)}, config...)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(config)/2)}
	for i := 0; i < len(config); i += 2 {
		n := strconv.Itoa(i / 2)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+config[i], "GIT_CONFIG_VALUE_"+n+"="+config[i+1])
	}
	return env
}

var filterRefused = lazyregexp.New(`(?i)does not support (--)?filter|filtering not|filter '?blob:none'? not ` +
	`supported|invalid filter-spec`)

// signatures map messages of a failed fetch to their meaning. The first match counts.
var signatures = []struct {
	match  func() *regexp.Regexp
	class  failure.Class
	remedy string
}{
	{lazyregexp.New(`(?im)^.*(` + noSpace + `|cannot allocate memory|out of memory).*$`), failure.Infra,
		"free some space or memory"},
	{lazyregexp.New(`(?im)^.*(authentication failed|permission denied|could not read ` +
		`(username|password)|returned error: 40[13]|host key verification failed|terminal prompts disabled).*$`),
		failure.Permanent,
		"check the address and the right to read it: credentials come from ssh keys, ~/.netrc or the URL"},
	{lazyregexp.New(`(?im)^.*(repository .*not found|returned error: 404|does not appear to be a git ` +
		`repository|not our ref|couldn't find remote ref|lacks these prerequisite commits|no such file or ` +
		`directory).*$`),
		failure.Permanent, "check the address"},
	{lazyregexp.New(`(?im)^.*(could not resolve host|temporary failure in name resolution|connection ` +
		`(reset|refused|timed out)|failed to connect|couldn't connect|operation (timed out|too slow)|early ` +
		`eof|unexpected disconnect|hung up unexpectedly|returned error: (429|5\d\d)|rpc failed|empty reply from ` +
		`server|(ssl|tls|gnutls)\S* .*(error|failed|reset|terminated|eof)|transfer closed|bad record mac|broken ` +
		`pipe|network is unreachable|no route to host).*$`), failure.Transient, "check the network"},
}

// noSpace matches git's messages about a full disk.
const noSpace = `no space left on device|disk quota exceeded`

var diskFull = lazyregexp.New(`(?i)` + noSpace)

// DiskFull reports whether a git command failed because a disk is full.
func DiskFull(err error) bool {
	e, ok := errors.AsType[*command.ExitError](err)
	return ok && diskFull().MatchString(e.Stderr)
}

// classify returns the meaning of a failed fetch.
func (m *Mirror) classify(e *command.ExitError) *FetchError {
	fe := &FetchError{Location: m.Shown, Class: failure.Permanent, Evidence: e.Error(), Err: e}
	for _, s := range signatures {
		if line := s.match().FindString(e.Stderr); line != "" {
			fe.Class, fe.Evidence, fe.Remedy = s.class, strings.TrimSpace(line), s.remedy
			return fe
		}
	}
	return fe
}
