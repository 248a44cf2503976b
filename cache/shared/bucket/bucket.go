// Package bucket keeps named objects where several machines reach them: in an S3-compatible object store, or in a
// directory of a shared file system.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"strings"
	"time"
)

// Object is one object of a listing.
type Object struct {
	Name   string
	Size   int64     // bytes
	Stored time.Time // time of the last write
}

// Reader reads objects. An error wraps fs.ErrNotExist if there is no object of the name.
type Reader interface {
	// Open returns an object's bytes. The reader resumes after a broken connection, as long as the object is the same.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List lists the objects whose names begin with a prefix, in no particular order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
}

// Writer writes objects. An object becomes visible in one step, when all of it has been written.
type Writer interface {
	// Create writes a new object. The error wraps fs.ErrExist if there is one of the name, as far as the server can
	// tell: a server without conditional writes keeps the last of two objects that are created at the same time.
	Create(ctx context.Context, name string, content io.ReaderAt, size int64) error
	// Replace writes an object, whether there is one of the name or not.
	Replace(ctx context.Context, name string, content io.ReaderAt, size int64) error
	// Remove removes objects. Names without an object are passed over.
	Remove(ctx context.Context, names []string) error
}

// Bucket is a set of named objects. Names are slash-separated.
type Bucket interface {
	Reader
	Writer
}

// Place says where a bucket is.
type Place struct {
	URL      string // s3://BUCKET/PREFIX or file:///DIRECTORY
	Endpoint string // s3: the server's http or https URL; empty: Amazon's
	Region   string // s3; empty: as the environment or the server says
	Login    *Login // s3: credentials; nil: those of this machine
}

// Open returns the bucket at a place. It sends no request.
func Open(p Place) (Bucket, error) {
	u, err := url.Parse(p.URL)
	if err != nil {
		return nil, errors.New("the store's URL is no URL")
	}
	switch u.Scheme {
	case "file":
		return NewDirectory(u.Path), nil
	case "s3":
		return newS3(u.Host, strings.Trim(u.Path, "/"), p)
	}
	return nil, fmt.Errorf("the store's URL begins neither with s3:// nor with file://")
}

// ErrDenied is wrapped by the error of a request that the server refused for want of credentials or rights.
var ErrDenied = errors.New("access denied")

// notExist is the error for an object that is not there.
func notExist(name string) error { return fmt.Errorf("%s: %w", name, fs.ErrNotExist) }
