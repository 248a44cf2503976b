package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/campaign/snapshot"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/cli"
	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/hclspec"
	"github.com/benchgraph/benchgraph/internal/sshkey"
	"github.com/benchgraph/benchgraph/remote"
)

// signingKey is the environment variable that names the file of the key by which entries of the shared store are
// signed.
const signingKey = "BENCHGRAPH_SIGNING_KEY"

// ownKinds are the kinds of nodes whose results are of no use to other machines: a result stands for something outside
// of the store, or can be made from the mirror of a repo in less time than it is sent. A snapshot is sent only with a
// job.
var ownKinds = [...]string{"repo", "source", "image", "push", snapshot.Address}

// isShared reports whether the result of a node is of use to another machine.
func isShared(address string) bool {
	kind, _, _ := strings.Cut(address, ".")
	return !slices.Contains(ownKinds[:], kind)
}

// isCarried reports whether jobs get the result of a node from the shared store. Jobs have no mirrors.
func isCarried(address string) bool {
	return strings.HasPrefix(address, "source.") || isShared(address)
}

// bucketOf returns the bucket of a shared store. It sends no request.
func (a *app) bucketOf(spec *hclspec.Store) (bucket.Bucket, error) {
	region := cmp.Or(spec.Region, a.env["AWS_REGION"], a.env["AWS_DEFAULT_REGION"])
	b, err := bucket.Open(bucket.Place{URL: spec.URL, Endpoint: spec.Endpoint, Region: region, Login: a.login})
	if err != nil {
		return nil, fmt.Errorf("shared store %s: %w", spec.URL, err)
	}
	return b, nil
}

// sharedStore checks whether this machine can read the shared store and, unless the file forbids it, write to it.
func (c *checkup) sharedStore(ctx context.Context) {
	spec := c.spec.Store
	if spec == nil {
		return
	}
	can := "read"
	b, err := c.bucketOf(spec)
	switch {
	case err != nil:
	case spec.ReadOnly:
		err = bucket.Readable(ctx, b)
	default:
		can, err = "read and written", bucket.Probe(ctx, b, "jobs/doctor-"+rand.Text())
	}
	if err != nil { // an apply goes on without the store, jobs do not
		c.lacks("shared store", len(c.clusters) > 0, bucket.Remedy(err), "%s: %v", spec.URL, err)
		return
	}
	c.ok("shared store", "%s can be %s", spec.URL, can)
}

// share puts the shared store that the file declares behind that of this machine. Offline, it only makes sure that
// entries from there are believed as they would be online. It sends no request.
func (s *session) share(o access) error {
	if s.project.Spec.Store == nil || s.store.Shares() {
		return nil
	}
	spec, put := *s.project.Spec.Store, s.store.Share
	if o.look != nil {
		spec.ReadOnly = true
		put = func(as shared.Options) { as.Look = o.look; s.store.Share(as) }
	} else if o.offline {
		put = s.store.Believe
	}
	return s.shareAt(&spec, &remote.Request{}, put)
}

func (s *session) shareAt(spec *hclspec.Store, r *remote.Request, put func(shared.Options)) error {
	b, err := s.bucketOf(spec)
	if err != nil {
		return err
	}
	keys, err := s.keysOf(spec)
	if err != nil {
		return err
	}
	place := sha256.Sum256([]byte(spec.Endpoint + " " + spec.URL))
	put(shared.Options{
		Bucket: b, Keys: keys, Lent: s.login != nil, Names: r.Names, Digests: r.Digests, Name: spec.URL,
		Dir: filepath.Join(s.state, "shared", hex.EncodeToString(place[:8])), ReadOnly: spec.ReadOnly, Wanted: isShared,
		Tell: func(warning string) { s.note("Warning: %s", view.Clean(warning)) },
	})
	return nil
}

// lacking returns an error if results may be in the shared store alone, which was away when it was asked for them; nil
// if all results are here, or if the store answered.
func (s *session) lacking(look *shared.Look, all bool) error {
	away := look.Away()
	if all || away == nil {
		return nil
	}
	return hint("Run it again when the store answers.", "not all results are here, and the shared store %s is away: %w",
		s.project.Spec.Store.URL, away)
}

// keysOf returns the keys that sign and check entries of a shared store and outcomes of jobs.
func (a *app) keysOf(spec *hclspec.Store) (sshkey.Keys, error) {
	path := a.env[signingKey]
	if spec.ReadOnly {
		path = ""
	}
	keys, err := sshkey.ReadKeys(spec.Trust, path)
	if err != nil {
		err = hint("Name the file of a private key that ssh-keygen -t ed25519 wrote, or unset "+signingKey+".",
			"%s=%s: %w", signingKey, path, err)
	}
	return keys, err
}

// flush waits until the results of an apply have been put into the shared store, and tells how many could not be put.
func (s *session) flush(ctx context.Context) {
	if !s.store.Shares() {
		return
	}
	if !s.store.Puts() && !s.project.Spec.Store.ReadOnly {
		s.note("Warning: nothing is put into the shared store: only entries that a key of trust signed are taken. "+
			"%s names the file of such a private key.", signingKey)
	}
	if n := s.store.Waiting(); n > 0 {
		s.note("Putting %s into the shared store %s.", view.Count(n, "result"), s.project.Spec.Store.URL)
	}
	s.tellSent(s.store.Flush(ctx))
}

func (s *session) tellSent(sent shared.Sent) {
	name := s.project.Spec.Store.URL
	if sent.Other > 0 {
		s.note("Warning: the shared store %s has other results for %s, which were put there before. "+
			"On this machine, its own results stand; benchgraph cache push names them.", name,
			view.Count(sent.Other, "node"))
	}
	if sent.Unsent > 0 {
		s.note("Warning: %s could not be put into the shared store %s: %v. %s",
			view.Count(sent.Unsent, "result"), name, sent.Err, bucket.Later(sent.Err))
	}
	if sent.Entries > 0 {
		s.note("Put %s (%s) into the shared store %s.", view.Count(sent.Entries, "result"), view.Bytes(sent.Bytes),
			name)
	}
}

// withShared opens the project, which must declare a shared store.
func (a *app) withShared(ctx context.Context, f func(*session) error) error {
	s, err := a.open(ctx, access{recall: recallAll})
	if err != nil {
		return err
	}
	defer s.close()
	if !s.store.Shares() {
		return noShared()
	}
	return f(s)
}

// sharedError returns an error of the shared store with its remedy.
func (s *session) sharedError(err error) error {
	return hint(cmp.Or(bucket.Known(err), remedyOf(err)), "shared store %s: %w", s.project.Spec.Store.URL, err)
}

func noShared() error {
	return &cli.UsageError{Message: "the file declares no shared store",
		Remedy: `write store { url = "s3://BUCKET/PREFIX" } into its benchgraph block`}
}

// pushCache puts the machine's entries that the shared store lacks there.
func (a *app) pushCache(ctx context.Context, o *cacheFlags) error {
	return a.withShared(ctx, func(s *session) error {
		if !s.store.Puts() {
			return hint("Remove read_only; where the file has trust, name a private key with "+signingKey+".",
				"shared store %s: this machine puts nothing there", s.project.Spec.Store.URL)
		}
		var differ []string // addresses
		sent, err := s.store.Push(ctx, func(own, there cache.Meta) bool {
			block := strings.HasPrefix(own.Address, "trial.") // measured independently: a second choice
			replace := o.replace && (!block || s.journal.Replaced(own, there.Log))
			if !replace {
				differ = append(differ, own.Address)
			}
			return replace
		})
		s.store.Warn()
		if err != nil {
			return s.sharedError(err)
		}
		if slices.Sort(differ); len(differ) > 0 {
			s.note("Warning: the shared store %s has other results for %s, which were put there before: %s. On this "+
				"machine, its own results stand. -replace puts there what was measured anew on request (apply "+
				"-replace), and what was read from it.", s.project.Spec.Store.URL, view.Count(len(differ), "node"),
				view.Clean(strings.Join(differ, ", ")))
		}
		if sent.Unsent > 0 {
			return s.sharedError(fmt.Errorf("%s not put there: %w", view.Count(sent.Unsent, "result"), sent.Err))
		}
		if o.json {
			return view.JSON(a.stdout, map[string]any{"format": view.Format, "pushed": sent.Entries,
				"bytes": sent.Bytes, "there": sent.There, "other": len(differ)})
		}
		_, err = fmt.Fprintf(a.stdout, "Pushed %s (%s); there already: %s.\n",
			view.Count(sent.Entries, "entry"), view.Bytes(sent.Bytes), view.Number(sent.There))
		return err
	})
}

// pullCache brings the results that the project's nodes use from the shared store here.
func (a *app) pullCache(ctx context.Context, o *cacheFlags) error {
	used := map[cache.Key]bool{}
	s, err := a.use(ctx, used, access{})
	if err != nil {
		return err
	}
	defer s.close()
	if !s.store.Shares() {
		return noShared()
	}
	if err := s.store.Away(ctx); err != nil {
		return s.sharedError(err)
	}
	var keys []cache.Key
	for key := range used {
		keys = append(keys, key)
	}
	got := s.store.Pull(ctx, keys)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o.json {
		doc := map[string]any{"format": view.Format, "pulled": got.Entries, "bytes": got.Bytes, "lost": got.Lost}
		err = view.JSON(a.stdout, doc)
	} else {
		_, err = fmt.Fprintf(a.stdout, "Pulled %s (%s).\n", view.Count(got.Entries, "entry"), view.Bytes(got.Bytes))
	}
	if err == nil && got.Lost > 0 {
		return hint(remake, "%s could not be pulled", view.Count(got.Lost, "entry"))
	}
	return err
}
