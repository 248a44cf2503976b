package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// amazon is the server of an s3 URL without an endpoint.
const amazon = "https://s3.amazonaws.com"

// retries is how often the client library sends a request at most. The pause between two tries grows to a second.
const retries = 4

// The limits of a connection. A connection without a byte for patience is given up.
const (
	dialWithin = 5 * time.Second
	patience   = 30 * time.Second
)

// S3 is a bucket of an S3-compatible object store.
type S3 struct {
	core     minio.Core
	bucket   string
	prefix   string // begins the names of all objects; empty, or ends in a slash
	partSize int64
	patience time.Duration

	endpoint, region string
	creds            *credentials.Credentials
	transport        *http.Transport
}

func newS3(bucket, prefix string, p Place) (*S3, error) {
	endpoint := p.Endpoint
	if endpoint == "" {
		endpoint = amazon
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, errors.New("the store's endpoint is no URL")
	}
	s := &S3{bucket: bucket, partSize: smallestPart, patience: patience, endpoint: endpoint}
	if prefix != "" {
		s.prefix = prefix + "/"
	}
	region := p.Region
	if region == "" && endpoint != amazon {
		region = "us-east-1" // every other server accepts it; without a region, the client would first ask for one
	}
	s.region, s.creds = region, usualCredentials()
	if p.Login != nil {
		s.creds = p.Login.given()
	}
	s.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSHandshakeTimeout: dialWithin, ResponseHeaderTimeout: 2 * patience,
		MaxIdleConnsPerHost: 2 * parallelParts, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	client, err := minio.New(u.Host, &minio.Options{Secure: u.Scheme == "https", Region: region, MaxRetries: retries,
		Creds: s.creds, Transport: s.transport})
	if err != nil {
		return nil, fmt.Errorf("the store's endpoint: %w", err)
	}
	s.core.Client = client
	return s, nil
}

// usualCredentials returns the credentials that other programs for S3 find, too: the environment, the files of the AWS
// command line, the role of a container or an instance. It looks nothing up before the first request.
func usualCredentials() *credentials.Credentials {
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{Proxy: nil}}},
	})
}

// failure returns the error of a request in the terms of Bucket.
func failure(name string, err error) error {
	var response minio.ErrorResponse
	if !errors.As(err, &response) {
		return unreached(err)
	}
	said := strings.TrimSuffix(response.Message, ".")
	switch { // before what the status alone says: servers have several for one cause
	case response.StatusCode == http.StatusInsufficientStorage, response.Code == "XMinioStorageFull",
		response.Code == "XMinioAdminBucketQuotaExceeded", response.Code == "QuotaExceeded": // MinIO, Ceph
		return fmt.Errorf("%w: %s", ErrFull, said)
	case response.Code == "RequestTimeTooSkewed": // has the status of a missing right
		return fmt.Errorf("%w: %s", ErrClock, said)
	case response.StatusCode == http.StatusRequestEntityTooLarge, response.Code == "EntityTooLarge":
		return fmt.Errorf("%s: %w: %s", name, ErrTooLarge, said)
	}
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return away{err}
	}
	switch {
	case response.Code == minio.NoSuchBucket:
		return ErrNoBucket
	case response.Code == minio.NoSuchKey:
		return notExist(name)
	case response.StatusCode == http.StatusPreconditionFailed, response.StatusCode == http.StatusConflict:
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	case response.StatusCode == http.StatusForbidden, response.StatusCode == http.StatusUnauthorized,
		response.Code == minio.AccessDenied,                              // for one of several objects
		response.Code == "ExpiredToken", response.Code == "InvalidToken": // with status 400 from Amazon
		return fmt.Errorf("%w: %s", ErrDenied, said)
	}
	return err
}

// Open opens an object. See Reader.
func (s *S3) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	b := &body{s: s, ctx: ctx, name: name}
	if err := b.open(); err != nil {
		return nil, failure(name, err)
	}
	return b, nil
}

// body is the body of an object. After a broken or stalled connection, it asks for the rest of the object.
type body struct {
	s      *S3
	ctx    context.Context
	name   string
	at     int64  // offset of the next byte
	size   int64  // of the whole object
	etag   string // of the object at the first request
	broken int    // connections in a row without progress
	stream io.ReadCloser
	cancel context.CancelFunc
}

// breaks is how many connections in a row may break without a byte of progress.
const breaks = 5

func (b *body) open() error {
	ctx, cancel := context.WithCancel(b.ctx)
	var o minio.GetObjectOptions
	if b.etag != "" { // so that bytes of two objects are not mixed
		_ = o.SetMatchETag(b.etag)
	}
	if b.at > 0 {
		_ = o.SetRange(b.at, 0)
	}
	stream, info, _, err := b.s.core.GetObject(ctx, b.s.bucket, b.s.prefix+b.name, o)
	if err != nil {
		cancel()
		return err
	}
	if b.etag == "" {
		b.etag = info.ETag
	}
	b.size = b.at + info.Size
	b.stream, b.cancel = stream, cancel
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	for {
		if b.stream == nil {
			if err := b.open(); err != nil {
				return 0, failure(b.name, err)
			}
		}
		stalled := time.AfterFunc(b.s.patience, b.cancel)
		n, err := b.stream.Read(p)
		stalled.Stop()
		b.at += int64(n)
		switch {
		case err == nil, err == io.EOF && b.at >= b.size:
			b.broken = 0
			return n, err
		case b.ctx.Err() != nil:
			return n, context.Cause(b.ctx)
		case n > 0:
			b.broken = 0
		}
		_ = b.Close()
		if b.broken++; b.broken > breaks {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, away{fmt.Errorf("%s: the connection broke %d times: %w", b.name, b.broken, err)}
		}
		if n > 0 {
			return n, nil
		}
		select {
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		case <-time.After(100 * time.Millisecond << b.broken):
		}
	}
}

func (b *body) Close() error {
	if b.stream == nil {
		return nil
	}
	b.cancel()
	err := b.stream.Close()
	b.stream = nil
	return err
}

// List lists objects. See Reader.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		all := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
		for o := range s.core.ListObjectsIter(ctx, s.bucket, all) {
			if o.Err != nil {
				yield(Object{}, failure(path.Join(s.bucket, s.prefix+prefix), o.Err))
				return
			}
			if !yield(Object{Name: strings.TrimPrefix(o.Key, s.prefix), Size: o.Size, Stored: o.LastModified}, nil) {
				return
			}
		}
	}
}

// Remove removes objects, a thousand a request. See Writer.
func (s *S3) Remove(ctx context.Context, names []string) error {
	objects := make(chan minio.ObjectInfo)
	go func() {
		defer close(objects)
		for _, name := range names {
			select {
			case objects <- minio.ObjectInfo{Key: s.prefix + name}:
			case <-ctx.Done():
				return
			}
		}
	}()
	var errs []error
	for e := range s.core.RemoveObjects(ctx, s.bucket, objects, minio.RemoveObjectsOptions{}) {
		errs = append(errs, failure(e.ObjectName, e.Err))
	}
	return errors.Join(errs...)
}
