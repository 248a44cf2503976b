package remote

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/sshkey"
	"github.com/benchgraph/benchgraph/remote/objects"
)

// With trust, an outcome is believed only if a key of trust signed it for this job of this node.
func TestOnlySignedOutcomesAreBelieved(t *testing.T) {
	ctx := context.Background()
	public, own, _ := ed25519.GenerateKey(nil)
	_, other, _ := ed25519.GenerateKey(nil)
	trusted := sshkey.Keys{Trust: []ed25519.PublicKey{public}, Own: own}
	node, another := &Request{Owner: "0000000a", Key: cache.Key{1}}, &Request{Owner: "0000000a", Key: cache.Key{2}}
	failed := Outcome{Job: "7", Failure: &failure.Failure{Message: "no such kernel"}}
	nameOf := func(r *Request) string { return objects.Name(objects.JobKey(r.Key, r.Owner, ""), objects.Outcome) }
	for name, test := range map[string]struct {
		keys  sshkey.Keys // of the apply
		leave func(b bucket.Bucket) error
		want  error // nil: it is taken
	}{
		"right": {trusted, func(b bucket.Bucket) error { return node.Leave(ctx, b, trusted, failed) }, nil},
		"unsigned": {trusted, func(b bucket.Bucket) error { return node.Leave(ctx, b, sshkey.Keys{}, failed) },
			errUnsigned},
		"unsigned, without trust": {sshkey.Keys{}, func(b bucket.Bucket) error {
			return node.Leave(ctx, b, sshkey.Keys{}, failed)
		}, nil},
		"signed, without trust": {sshkey.Keys{}, func(b bucket.Bucket) error {
			return node.Leave(ctx, b, trusted, failed)
		}, nil},
		"of another key": {trusted, func(b bucket.Bucket) error {
			return node.Leave(ctx, b, sshkey.Keys{Own: other}, failed)
		}, errUnsigned},
		"changed": {trusted, func(b bucket.Bucket) error {
			return errors.Join(node.Leave(ctx, b, trusted, failed), copyOutcome(ctx, b, nameOf(node), nameOf(node),
				"no such kernel", "no such thing!"))
		}, errUnsigned},
		"of another node": {trusted, func(b bucket.Bucket) error {
			return errors.Join(another.Leave(ctx, b, trusted, failed),
				copyOutcome(ctx, b, nameOf(another), nameOf(node), "", ""))
		}, errUnsigned},
		"of an earlier job": {trusted, func(b bucket.Bucket) error {
			return node.Leave(ctx, b, trusted, Outcome{Job: "6", Failure: failed.Failure})
		}, errOther},
		"of a job without a name": {trusted, func(b bucket.Bucket) error {
			return node.Leave(ctx, b, trusted, Outcome{Failure: failed.Failure})
		}, errOther},
	} {
		b := bucket.NewDirectory(t.TempDir())
		if err := test.leave(b); err != nil {
			t.Fatal(name, err)
		}
		j := &attempt{Executor: &Executor{Options: Options{Bucket: b, Keys: test.keys}},
			key: objects.JobKey(node.Key, node.Owner, "")}
		o, err := j.outcomeFrom(ctx, failed.Job)
		if !errors.Is(err, test.want) || (err == nil) != (o.Failure != nil) {
			t.Errorf("%s: %v, not %v; failure %v", name, err, test.want, o.Failure)
		}
	}
}

// With trust, the outcome of a job that no apply followed counts only for the job that was submitted last.
func TestOutcomesOfJobsThatNobodyFollowed(t *testing.T) {
	ctx := context.Background()
	public, own, _ := ed25519.GenerateKey(nil)
	trusted := sshkey.Keys{Trust: []ed25519.PublicKey{public}, Own: own}
	r := &Request{Owner: "0000000a", Key: cache.Key{1}}
	for name, test := range map[string]struct {
		noted string // in the state
		keys  sshkey.Keys
		want  bool
	}{
		"of the last job":       {`{"jobs": 2, "last": "7"}`, trusted, true},
		"of an earlier job":     {`{"jobs": 2, "last": "8"}`, trusted, false},
		"no job was submitted":  {"", trusted, false},
		"no name was noted":     {"2", trusted, true},
		"of any, without trust": {"", sshkey.Keys{}, true},
	} {
		b, counted := bucket.NewDirectory(t.TempDir()), filepath.Join(t.TempDir(), "counted")
		err := r.Leave(ctx, b, trusted, Outcome{Job: "7"})
		if test.noted != "" {
			err = errors.Join(err, os.WriteFile(counted, []byte(test.noted), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		j := &attempt{Executor: &Executor{Options: Options{Bucket: b, Keys: test.keys}},
			key: objects.JobKey(r.Key, r.Owner, ""), counted: counted}
		if _, ok := j.outcome(ctx); ok != test.want {
			t.Errorf("%s: %v", name, ok)
		}
		if s, ok := j.submissions(); ok && s.Jobs != 2 || ok != (test.noted != "") {
			t.Errorf("%s: %+v, %v", name, s, ok)
		}
	}
}

// copyOutcome copies an object with one text replaced by another.
func copyOutcome(ctx context.Context, b bucket.Bucket, from, to, old, text string) error {
	body, err := b.Open(ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	all, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if old != "" {
		all = bytes.ReplaceAll(all, []byte(old), []byte(text))
	}
	return b.Replace(ctx, to, bytes.NewReader(all), int64(len(all)))
}
