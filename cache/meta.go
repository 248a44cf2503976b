package cache

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// MetaFile is the file of an entry that holds its Meta, sealed: a labelled line for each field, then the text of the
// key and the list of files. A plan reads one for every node; JSON would cost most of the plan's time.
const (
	MetaFile    = "meta"
	metaMagic   = "benchgraph entry 3 "
	LongestMeta = 1 << 28 // bytes; a longer one is neither written nor read
)

// EncodeMeta returns a meta file, or an error if it would be longer than LongestMeta.
func EncodeMeta(m Meta) ([]byte, error) {
	created, err := m.Created.MarshalText()
	if err != nil {
		return nil, err
	}
	log := strings.TrimSpace(strconv.Quote(m.Log) + " " + m.Transcript)      // older versions skip the transcript
	digest := strings.TrimSpace(strconv.Quote(m.Digest) + " " + m.Signature) // and the signature
	body := fmt.Appendf(nil,
		"key %s\ncontent %s\ndigest %s\naddress %q\nlog %s\ncreated %s\nduration %d\nbytes %d\nfiles %d\ntext %d\n",
		m.Key, m.Content, digest, m.Address, log, created, int64(m.Duration), m.Bytes, len(m.Files), len(m.Text))
	body = append(body, m.Text...)
	if body = append(body, listing(m.Files)...); len(body) > LongestMeta-64 { // 64: for the first line
		return nil, fmt.Errorf("its meta file would be longer than %d bytes", LongestMeta)
	}
	return seal(metaMagic, body), nil
}

// DecodeMeta reads a meta file. It checks neither that the key is that of the text, nor the digest that of the files.
func DecodeMeta(data []byte) (Meta, error) {
	body, err := unseal(metaMagic, data)
	if err != nil {
		return Meta{}, fmt.Errorf("its meta file: %w", err)
	}
	r := metaReader{rest: string(body)}
	var m Meta
	m.Key, m.Content = r.key("key"), r.key("content")
	m.Digest, m.Signature = r.texts("digest")
	m.Address, _ = r.texts("address")
	m.Log, m.Transcript = r.texts("log")
	if m.Transcript != "" { // it is long, and must not be kept in memory with the other fields
		m.Transcript, r.rest = strings.Clone(m.Transcript), strings.Clone(r.rest)
		m.Digest, m.Address, m.Log = strings.Clone(m.Digest), strings.Clone(m.Address), strings.Clone(m.Log)
		m.Signature = strings.Clone(m.Signature)
	}
	m.Created, m.Duration, m.Bytes = r.time("created"), time.Duration(r.number("duration")), r.number("bytes")
	count, length := r.number("files"), r.number("text")
	if r.err == nil && (length < 0 || length > int64(len(r.rest))) {
		r.err = errors.New("the text is cut short")
	}
	if r.err == nil {
		m.Text = r.rest[:length]
		m.Files, r.err = parseListing(r.rest[length:])
	}
	if r.err == nil && int64(len(m.Files)) != count {
		r.err = fmt.Errorf("%d files are listed instead of %d", len(m.Files), count)
	}
	if r.err != nil {
		return Meta{}, fmt.Errorf("its meta file: %w", r.err)
	}
	return m, nil
}

// metaReader reads labelled lines one after the other. After the first error, it returns zero values.
type metaReader struct {
	rest string
	err  error
}

// line returns the rest of the next line, after the label.
func (r *metaReader) line(label string) string {
	line, rest, _ := strings.Cut(r.rest, "\n")
	name, value, ok := strings.Cut(line, " ")
	if r.err == nil && (!ok || name != label) {
		r.err = fmt.Errorf("%.40q is no %s", line, label)
	}
	if r.err != nil {
		return ""
	}
	r.rest = rest
	return value
}

// note keeps the first error.
func (r *metaReader) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *metaReader) key(label string) Key {
	key, err := ParseKey(r.line(label))
	r.note(err)
	return key
}

// texts reads a quoted text, and the rest of its line.
func (r *metaReader) texts(label string) (value, more string) {
	value, more, err := cutQuoted(r.line(label))
	r.note(err)
	return value, strings.TrimSpace(more)
}

func (r *metaReader) number(label string) int64 {
	n, err := strconv.ParseInt(r.line(label), 10, 64)
	r.note(err)
	return n
}

func (r *metaReader) time(label string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.line(label))
	r.note(err)
	return t
}

// HeadOfMeta is the number of bytes of a meta file that are read for its address alone: a store has tens of thousands.
const HeadOfMeta = 1024

// AddressIn reads the address from the first bytes of a meta file; head is the buffer. known is false if the address is
// not in these bytes; then the whole file must be read.
func AddressIn(path string, head []byte) (address string, known bool) {
	f, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(f)
	n, err := unix.Read(f, head)
	if err != nil {
		return "", false
	}
	_, rest, found := bytes.Cut(head[:max(n, 0)], []byte("\naddress "))
	line, _, whole := bytes.Cut(rest, []byte("\n"))
	if !found || !whole {
		return "", false
	}
	address, err = strconv.Unquote(string(line))
	return address, err == nil
}
