package bucket

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"time"
)

// probeWithin bounds a probe.
const probeWithin = 30 * time.Second

// Probe returns why objects cannot be written to a bucket and read from it; nil if they can. It tries with an object of
// the given name, which it removes.
func Probe(ctx context.Context, b Bucket, name string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	const text = "benchgraph looks whether the store can be used\n"
	if err := b.Replace(ctx, name, strings.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	body, err := b.Open(ctx, name)
	if err == nil {
		_, err = io.ReadAll(body)
		body.Close()
	}
	_ = b.Remove(ctx, []string{name}) // a user without the right to remove objects can still use the store
	return err
}

// Readable returns why the objects of a bucket cannot be listed; nil if they can.
func Readable(ctx context.Context, b Bucket) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	for _, err := range b.List(ctx, "") {
		return err
	}
	return nil
}

// ErrNoBucket is wrapped by the error of a request for a bucket that is not there.
var ErrNoBucket = errors.New("there is no such bucket")

// ErrFull is wrapped by the error of a write for which the store has no room.
var ErrFull = errors.New("the store is full")

// ErrTooLarge is wrapped by the error of a request that the server, or a proxy before it, takes for too large.
var ErrTooLarge = errors.New("the object is too large for the store")

// ErrClock is wrapped by the error of a request whose time is too far from that of the server.
var ErrClock = errors.New("the clock of this machine is not that of the store")

// Remedy returns what the user can do about an error of a bucket.
func Remedy(err error) string {
	return cmp.Or(Known(err),
		"Correct url, endpoint and region of the store, or try again when it can be reached.")
}

// Known is Remedy for an error whose cause is known; else it is empty.
func Known(err error) string {
	switch {
	case errors.Is(err, ErrDenied):
		return "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, to credentials that are valid and " +
			"may list, read and write the store."
	case errors.Is(err, ErrClock):
		return "Set the clock of the machine, by NTP for example."
	case errors.Is(err, ErrFull):
		return "Give the store more room, or remove what was put there first with benchgraph cache gc -shared " +
			"-max-size=SIZE."
	case errors.Is(err, ErrTooLarge):
		return "Raise the limit of the store's server, or of a proxy before it (client_max_body_size of nginx): " +
			"requests have up to 16 MiB."
	case errors.Is(err, fs.ErrPermission):
		return "Ask the owner of the directory that is named to let you write there (chmod -R g+rwX; see A directory " +
			"for a group in docs/sharing.md)."
	case errors.Is(err, ErrNoBucket):
		return "Make the bucket, or correct url and endpoint of the store."
	}
	return ""
}

// Later returns how results that could not be put into a bucket get there later.
func Later(err error) string {
	const later = " This machine keeps its results: benchgraph cache push puts them there later."
	return strings.TrimSpace(Known(err) + later)
}

// unreached returns the error of a request that reached no server, without the URL's query, which nobody needs.
func unreached(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		if at, invalid := url.Parse(request.URL); invalid == nil {
			return away{errors.New(at.Scheme + "://" + at.Host + " does not answer: " + request.Err.Error())}
		}
	}
	return err
}
