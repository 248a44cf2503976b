package bucket

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// smallestPart is the size in bytes of the parts of an object. An object of one part is written by one request.
const smallestPart = 16 << 20

// mostParts is how many parts an object may have.
const mostParts = 10_000

// parallelParts is how many parts of an object are sent at a time.
const parallelParts = 4

// Create writes a new object. See Writer.
func (s *S3) Create(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*")
	return s.write(ctx, name, content, size, o)
}

// Replace writes an object. See Writer.
func (s *S3) Replace(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	return s.write(ctx, name, content, size, minio.PutObjectOptions{})
}

func (s *S3) write(ctx context.Context, name string, content io.ReaderAt, size int64, o minio.PutObjectOptions) error {
	o.ContentType = "application/octet-stream"
	if size <= s.partSize {
		_, err := s.core.PutObject(ctx, s.bucket, s.prefix+name, io.NewSectionReader(content, 0, size), size, "", "", o)
		return failure(name, err)
	}
	u := &upload{s: s, name: name, content: content, size: size, part: s.partSize}
	for u.size > u.part*mostParts {
		u.part *= 2
	}
	err := u.send(ctx, o)
	if gone(err) { // another process completed or ended the upload
		if u.exists(ctx) {
			return fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
		u.id = ""
		err = u.send(ctx, o)
	}
	return failure(name, err)
}

// upload is an object that is written in parts. The server keeps the parts of an upload that broke off, and the next
// upload of the object goes on with them.
type upload struct {
	s       *S3
	name    string
	content io.ReaderAt
	size    int64
	part    int64 // size of a part
	id      string
}

func gone(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchUpload }

func (u *upload) exists(ctx context.Context) bool {
	_, err := u.s.core.StatObject(ctx, u.s.bucket, u.s.prefix+u.name, minio.StatObjectOptions{})
	return err == nil
}

func (u *upload) section(number int) *io.SectionReader {
	from := int64(number-1) * u.part
	return io.NewSectionReader(u.content, from, min(u.part, u.size-from))
}

// send sends the parts that the server does not have yet, and completes the object.
func (u *upload) send(ctx context.Context, o minio.PutObjectOptions) error {
	s, key := u.s, u.s.prefix+u.name
	have, err := u.begun(ctx)
	if err != nil {
		return err
	}
	if u.id == "" {
		kind := minio.PutObjectOptions{ContentType: o.ContentType}
		if u.id, err = s.core.NewMultipartUpload(ctx, s.bucket, key, kind); err != nil {
			return err
		}
	}
	parts := make([]minio.CompletePart, (u.size+u.part-1)/u.part)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(parallelParts)
	for i := range parts {
		g.Go(func() error {
			if within.Err() != nil {
				return context.Cause(within)
			}
			section := u.section(i + 1)
			sent, there := have[i+1]
			if !there || !u.same(sent, section) {
				var err error
				// Without TLS, the library would sign each chunk, and not every server undoes that for parts.
				plain := minio.PutObjectPartOptions{DisableContentSha256: true}
				sent, err = s.core.PutObjectPart(within, s.bucket, key, u.id, i+1, section, section.Size(), plain)
				if err != nil {
					return err
				}
			}
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: sent.ETag}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err = s.core.CompleteMultipartUpload(ctx, s.bucket, key, u.id, parts, o)
	if errors.Is(failure(u.name, err), fs.ErrExist) {
		_ = s.core.AbortMultipartUpload(ctx, s.bucket, key, u.id)
	}
	return err
}

// begun finds an upload of the object that broke off, and its parts by number. If the server does not or must not list
// them, a new upload begins.
func (u *upload) begun(ctx context.Context) (map[int]minio.ObjectPart, error) {
	s, key := u.s, u.s.prefix+u.name
	have := map[int]minio.ObjectPart{}
	found, err := s.core.ListMultipartUploads(ctx, s.bucket, key, "", "", "", 100)
	if err != nil {
		return have, ctx.Err()
	}
	for _, up := range found.Uploads {
		if up.Key == key {
			u.id = up.UploadID
		}
	}
	for marker := 0; u.id != ""; {
		page, err := s.core.ListObjectParts(ctx, s.bucket, key, u.id, marker, 1000)
		if err != nil {
			u.id = ""
			return map[int]minio.ObjectPart{}, ctx.Err()
		}
		for _, p := range page.ObjectParts {
			have[p.PartNumber] = p
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			break
		}
		marker = page.NextPartNumberMarker
	}
	return have, nil
}

// same reports whether a part that the server has is certainly that section of the object. If the server's ETag is no
// MD5, the part is sent again.
func (u *upload) same(p minio.ObjectPart, section *io.SectionReader) bool {
	if p.Size != section.Size() {
		return false
	}
	h := md5.New()
	if _, err := io.Copy(h, io.NewSectionReader(section, 0, section.Size())); err != nil {
		return false
	}
	return strings.Trim(p.ETag, `"`) == hex.EncodeToString(h.Sum(nil))
}
