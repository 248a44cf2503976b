package shared

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/internal/sshkey"
)

var (
	endpoint = flag.String("endpoint", "", "measure on the S3 server at `URL`, which has a bucket team")
	gigabyte = flag.Int64("transfer", 1<<30, "bytes of the result that is moved")
)

// BenchmarkTransfer moves a large result to a server and back: by the client library alone, and as an entry that is
// checked and made durable.
func BenchmarkTransfer(b *testing.B) {
	at := *endpoint
	if at == "" {
		at = serve(b).URL
	}
	u, err := url.Parse(at)
	if err != nil {
		b.Fatal(err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", Region: "us-east-1", Creds: credentials.NewEnvAWS(),
	})
	if err != nil {
		b.Fatal(err)
	}
	place, err := bucket.Open(bucket.Place{URL: "s3://team/transfer", Endpoint: at})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	file := filepath.Join(b.TempDir(), "file")
	f, err := os.Create(file)
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, *gigabyte)
	}
	if err != nil || f.Close() != nil {
		b.Fatal(err)
	}
	a := open(b, place)
	var put cache.Entry
	moves := func(name string, before func(), move func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(*gigabyte)
			for b.Loop() {
				b.StopTimer()
				before()
				b.StartTimer()
				if err := move(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	moves("put/client", func() {}, func() error {
		_, err := client.FPutObject(ctx, "team", "raw", file, minio.PutObjectOptions{})
		return err
	})
	moves("put/entry", func() {
		if put.Dir != "" {
			return
		}
		dir := cachetest.Prepare(b, a, nil)
		if err := os.Link(file, filepath.Join(dir, cache.FilesDir, "file")); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
		if put, err = a.Disk.Put(ctx, cache.Draft{Dir: dir, Meta: cachetest.Meta("large")}); err != nil {
			b.Fatal(err)
		}
	}, func() error {
		p, err := pack(put, sshkey.NoSignature)
		if err != nil {
			return err
		}
		return place.Replace(ctx, ObjectOf(put.Key), p, p.size)
	})
	get := func() error { return client.FGetObject(ctx, "team", "raw", file, minio.GetObjectOptions{}) }
	moves("get/client", func() { _ = os.Remove(file) }, get)
	moves("get/client-durable", func() { _ = os.Remove(file) }, func() error { // an entry is durable, too
		if err := get(); err != nil {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
	var m *machine
	moves("get/entry", func() {
		if m != nil {
			if err := m.Remove(put.Key); err != nil {
				b.Fatal(err)
			}
			return
		}
		m = open(b, place)
	}, func() error {
		_, err := m.remote.fetch(ctx, put.Key)
		return err
	})
}
