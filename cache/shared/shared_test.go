package shared

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/cache/cachetest"
	"github.com/benchgraph/benchgraph/cache/disk"
	"github.com/benchgraph/benchgraph/cache/shared/bucket"
	"github.com/benchgraph/benchgraph/cache/shared/index"
)

// server is an S3 server, with a handler between it and its clients.
type server struct {
	*httptest.Server
	between atomic.Pointer[fault]
	log     struct {
		sync.Mutex
		lines []string
	}
}

func serve(t testing.TB) *server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	backend := s3mem.New()
	if err := backend.CreateBucket("team"); err != nil {
		t.Fatal(err)
	}
	next := gofakes3.New(backend, gofakes3.WithTimeSkewLimit(0)).Server()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.log.Lock()
		s.log.lines = append(s.log.lines, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Range"))
		s.log.Unlock()
		if f := s.between.Load(); f != nil {
			(*f)(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// put puts a handler between the server and its clients.
func (s *server) put(f fault) {
	s.between.Store(&f)
}

// requests returns the requests so far that contain a text.
func (s *server) requests(text string) (found []string) {
	s.log.Lock()
	defer s.log.Unlock()
	for _, line := range s.log.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func (s *server) bucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(bucket.Place{URL: "s3://team/results", Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// breaking is a response that breaks off after some bytes of its body.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

// slow is a response that arrives in small pieces.
type slow struct{ http.ResponseWriter }

func (s slow) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = s.ResponseWriter.Write(p[n:min(n+1000, len(p))])
		s.ResponseWriter.(http.Flusher).Flush()
		time.Sleep(time.Millisecond)
		n += m
	}
	return n, err
}

// machine is a machine with a store of its own, and the warnings that it got.
type machine struct {
	*Store
	mu       sync.Mutex
	warnings []string
}

func open(t testing.TB, b bucket.Bucket, change ...func(*Options)) *machine {
	t.Helper()
	d, err := disk.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{Store: New(d)}
	all := func(string) bool { return true }
	o := Options{Bucket: b, Name: "test", Dir: t.TempDir(), Wanted: all, Tell: func(s string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.warnings = append(m.warnings, s)
	}}
	for _, f := range change {
		f(&o)
	}
	m.Share(o)
	t.Cleanup(func() { m.Close() })
	return m
}

func (m *machine) told() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.warnings, "\n")
}

// flush sends the results that were put.
func (m *machine) flush(t *testing.T, want Sent) {
	t.Helper()
	got := m.Flush(context.Background())
	whole := got
	got.Bytes, got.Err = 0, nil
	if got != want || (whole.Err != nil) != (want.Unsent > 0) {
		t.Errorf("Flush = %+v, want %+v; warnings: %s", whole, want, m.told())
	}
}

var files = map[string]string{
	"a/wheel.whl": "bytes of a wheel", "bin/tool*": "#!/bin/sh\n", "bin/alias": "->tool", "empty": "",
	"odd \"name\"\n\xff": "x", "up/down": "->../a/wheel.whl",
}

// fault is a handler between a client and the server.
type fault = func(w http.ResponseWriter, r *http.Request, next http.Handler)

// TestSuite runs the suite of all stores on a shared store.
func TestSuite(t *testing.T) {
	t.Run("s3", func(t *testing.T) {
		s := serve(t)
		cachetest.Run(t, func(t *testing.T) cachetest.Store {
			url := "s3://team/" + strings.ReplaceAll(t.Name(), "/", "-")
			b, err := bucket.Open(bucket.Place{URL: url, Endpoint: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			return open(t, b)
		})
	})
	t.Run("directory", func(t *testing.T) {
		cachetest.Run(t, func(t *testing.T) cachetest.Store { return open(t, bucket.NewDirectory(t.TempDir())) })
	})
}

// TestAnotherMachineGetsTheResult puts a result on one machine and gets it on another one, over every temporary fault
// of a connection.
func TestAnotherMachineGetsTheResult(t *testing.T) {
	once := func(is func(*http.Request) bool, fault fault) fault {
		var done atomic.Bool
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if is(r) && !done.Swap(true) {
				fault(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	entry := func(method string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, "/entries/") }
	}
	unavailable := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	list := func(r *http.Request) bool { return r.URL.Query().Has("list-type") }
	breakUpload := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = r.Body.Read(make([]byte, 100))
		panic(http.ErrAbortHandler)
	}
	breakDownload := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&breaking{w, 700}, r)
	}
	slowly := func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(slow{w}, r) }
	for name, fault := range map[string]fault{
		"none":                   nil,
		"upload breaks off":      once(entry("PUT"), breakUpload),
		"download breaks off":    once(entry("GET"), breakDownload),
		"unavailable for a put":  once(entry("PUT"), unavailable),
		"unavailable for a get":  once(entry("GET"), unavailable),
		"unavailable for a list": once(list, unavailable),
		"slow":                   slowly,
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := serve(t), context.Background()
			if fault != nil {
				s.put(fault)
			}
			a, b := open(t, s.bucket(t)), open(t, s.bucket(t))
			meta := cachetest.Meta("x")
			meta.Content = cachetest.Meta("content of x").Key
			put, err := a.Put(ctx, cache.Draft{Dir: cachetest.Prepare(t, a, files), Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			a.flush(t, Sent{Entries: 1})
			for _, peek := range []func() (cache.Entry, error){
				func() (cache.Entry, error) { return b.Peek(ctx, put.Key) },
				func() (cache.Entry, error) { return b.PeekContent(ctx, put.Content) },
			} {
				if e, err := peek(); err != nil || e.Dir != "" || e.Digest != put.Digest {
					t.Errorf("Peek = %+v, %v", e, err)
				}
			}
			got, err := b.Get(ctx, put.Key, true)
			if err != nil {
				t.Fatal(err, b.told())
			}
			same := got.Text == put.Text && got.Created.Equal(put.Created) && got.Log == put.Log
			if !same || !slices.Equal(got.Files, put.Files) {
				t.Errorf("Get = %+v, want %+v", got.Meta, put.Meta)
			}
			if _, err := b.Disk.Get(ctx, put.Key, true); err != nil {
				t.Errorf("the bytes that came: %v", err)
			}
			b.flush(t, Sent{})
			if told := a.told() + b.told(); told != "" {
				t.Errorf("warnings: %s", told)
			}
		})
	}
}

// TestDownloadGoesOn breaks a download off and checks the next request.
func TestDownloadGoesOn(t *testing.T) {
	s := serve(t)
	a, b := open(t, s.bucket(t)), open(t, s.bucket(t))
	big := strings.Repeat("0123456789abcdef", 1<<17)
	put := cachetest.Put(t, a, "big", map[string]string{"f": big})
	a.flush(t, Sent{Entries: 1})
	s.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == "GET" && strings.Contains(r.URL.Path, "/entries/") {
			w = &breaking{w, 600_000}
		}
		next.ServeHTTP(w, r)
	})
	if _, err := b.Get(context.Background(), put.Key, true); err != nil {
		t.Fatal(err, b.told())
	}
	asked := s.requests("GET /team/results/entries/")
	if len(asked) != 4 || !strings.HasSuffix(asked[1], "=600000-") || !strings.HasSuffix(asked[3], "=1800000-") {
		t.Errorf("asked for %q", asked)
	}
}

// TestUploadGoesOn breaks a large upload off so that the client gives up. Then another process pushes the same entry.
func TestUploadGoesOn(t *testing.T) {
	s := serve(t)
	a := open(t, s.bucket(t))
	var parts atomic.Int64
	s.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == "PUT" && r.URL.Query().Get("partNumber") > "1" {
			_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	put := cachetest.Put(t, a, "large", map[string]string{"f": strings.Repeat("0123456789abcdef", 40<<16)})
	a.flush(t, Sent{Unsent: 1})
	if a.told() != "" {
		t.Errorf("warnings: %s", a.told())
	}
	s.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == "PUT" {
			parts.Add(1)
		}
		next.ServeHTTP(w, r)
	})
	again := New(a.Disk)
	again.Share(a.remote.Options)
	if sent, err := again.Push(context.Background(), nil); err != nil || sent.Entries != 1 || sent.Unsent != 0 {
		t.Errorf("Push = %+v, %v", sent, err)
	}
	if n := parts.Load(); n != 2+1 { // two parts, and the index
		t.Errorf("%d requests wrote something, want 3: the first part was there", n)
	}
	if _, err := open(t, s.bucket(t)).Get(context.Background(), put.Key, true); err != nil {
		t.Error(err)
	}
}

// TestAStoreThatIsAway checks that such a store fails nothing, and gives one warning.
func TestAStoreThatIsAway(t *testing.T) {
	s, ctx := serve(t), context.Background()
	var away atomic.Bool
	s.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	a := open(t, s.bucket(t))
	there := cachetest.Put(t, a, "there", files)
	a.flush(t, Sent{Entries: 1})
	b := open(t, s.bucket(t))
	if _, err := b.Peek(ctx, there.Key); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	if _, err := b.Get(ctx, there.Key, true); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Get: %v, want a miss", err)
	}
	if _, err := b.Peek(ctx, there.Key); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("Peek: %v, want a miss: it cannot be brought", err)
	}
	for i := range 3 {
		cachetest.Put(t, b, fmt.Sprint("made ", i), files)
	}
	b.flush(t, Sent{Unsent: 3})
	if n := len(b.warnings); n != 1 {
		t.Errorf("%d warnings: %s", n, b.told())
	}
	away.Store(false)
	if sent, err := b.Push(ctx, nil); err != nil || sent.Entries != 3 {
		t.Errorf("Push = %+v, %v", sent, err)
	}
}

// TestPoisonedEntries checks that they are refused, give one warning each, and are replaced by results of this machine.
func TestPoisonedEntries(t *testing.T) {
	other := cachetest.Meta("other")
	for name, poison := range map[string]func(t *testing.T, object []byte) []byte{
		"one bit":     func(t *testing.T, o []byte) []byte { o[len(o)-1] ^= 1; return o },
		"cut short":   func(t *testing.T, o []byte) []byte { return o[:len(o)-1] },
		"cut at meta": func(t *testing.T, o []byte) []byte { return o[:100] },
		"empty":       func(t *testing.T, o []byte) []byte { return nil },
		"longer":      func(t *testing.T, o []byte) []byte { return append(o, 'x') },
		"something":   func(t *testing.T, o []byte) []byte { return bytes.Repeat([]byte("x"), 10_000) },
		"another text": func(t *testing.T, o []byte) []byte {
			return forge(t, o, func(m *cache.Meta) { m.Text = other.Text })
		},
		"another key": func(t *testing.T, o []byte) []byte {
			return forge(t, o, func(m *cache.Meta) { m.Key, m.Text = other.Key, other.Text })
		},
		"another list": func(t *testing.T, o []byte) []byte {
			return forge(t, o, func(m *cache.Meta) { m.Files = slices.Clone(m.Files)[1:] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, place := context.Background(), bucket.NewDirectory(t.TempDir())
			a, b := open(t, place), open(t, place)
			put := cachetest.Put(t, a, "x", files)
			a.flush(t, Sent{Entries: 1})
			object := poison(t, read(t, place, ObjectOf(put.Key)))
			if err := place.Replace(ctx, ObjectOf(put.Key), bytes.NewReader(object), int64(len(object))); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := b.Get(ctx, put.Key, true); !errors.Is(err, cache.ErrMiss) {
					t.Errorf("Get: %v, want a miss", err)
				}
			}
			if len(b.warnings) != 1 || !strings.Contains(b.told(), put.Key.Short()) {
				t.Errorf("warnings: %s", b.told())
			}
			left, _ := os.ReadDir(filepath.Join(filepath.Dir(filepath.Dir(put.Dir)), "quarantine"))
			if len(left) > 0 {
				t.Errorf("in quarantine: %v", left)
			}
			cachetest.Put(t, b, "x", files)
			b.flush(t, Sent{Entries: 1})
			if _, err := open(t, place).Get(ctx, put.Key, true); err != nil {
				t.Errorf("after it was made anew: %v", err)
			}
		})
	}
}

// TestLinksThatLeadOut checks that such entries are refused, although all digests are right.
func TestLinksThatLeadOut(t *testing.T) {
	outside := t.TempDir()
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	file := func(name string) cache.File { return cache.File{Path: name, Mode: 0o644, SHA256: empty} }
	link := cache.File{Path: "l", Link: outside, Mode: 0o644}
	for name, list := range map[string][]cache.File{
		"link":                {link},
		"file through a link": {link, file("l/f")},
		"listed twice":        {file("f"), file("f")},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, place := context.Background(), bucket.NewDirectory(t.TempDir())
			a, b := open(t, place), open(t, place)
			put := cachetest.Put(t, a, "x", files)
			a.flush(t, Sent{Entries: 1})
			object := forge(t, read(t, place, ObjectOf(put.Key)), func(m *cache.Meta) { m.Files, m.Bytes = list, 0 })
			if err := place.Replace(ctx, ObjectOf(put.Key), bytes.NewReader(object), int64(len(object))); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Get(ctx, put.Key, true); !errors.Is(err, cache.ErrMiss) {
				t.Errorf("Get: %v, want a miss", err)
			}
			if found, _ := os.ReadDir(outside); len(found) > 0 {
				t.Errorf("outside there is %v", found)
			}
		})
	}
}

// forge returns an entry's object with another meta. If the list of files was changed, the object is whole in itself.
func forge(t *testing.T, object []byte, change func(*cache.Meta)) []byte {
	t.Helper()
	line, rest, _ := bytes.Cut(object, []byte("\n"))
	var n int
	if _, err := fmt.Sscanf(string(line), magic+" %d", &n); err != nil {
		t.Fatal(err)
	}
	m, err := cache.DecodeMeta(rest[:n])
	if err != nil {
		t.Fatal(err)
	}
	files := len(m.Files)
	change(&m)
	if len(m.Files) != files && m.Bytes == 0 {
		m.Digest = cache.Digest(m.Files)
	}
	meta, err := cache.EncodeMeta(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(fmt.Appendf(nil, "%s %d -\n%s", magic, len(meta), meta), rest[n:]...)
}

func read(t *testing.T, b bucket.Bucket, name string) []byte {
	t.Helper()
	body, err := b.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTwoWriters puts different results under one key at the same time: every other machine gets the same one of them.
func TestTwoWriters(t *testing.T) {
	ctx, s := context.Background(), serve(t)
	a, b := open(t, s.bucket(t)), open(t, s.bucket(t))
	digests := map[string]bool{}
	for i := range 20 {
		for who, m := range map[string]*machine{"a": a, "b": b} {
			digests[cachetest.Put(t, m, fmt.Sprint(i), map[string]string{"who": who, "i": fmt.Sprint(i)}).Digest] = true
		}
	}
	var first, second Sent
	var both sync.WaitGroup
	both.Go(func() { first = a.Flush(ctx) })
	both.Go(func() { second = b.Flush(ctx) })
	both.Wait()
	if first.Entries+second.Entries != 20 || first.Other+second.Other != 20 || first.Unsent+second.Unsent != 0 {
		t.Errorf("sent %+v and %+v", first, second)
	}
	c := open(t, s.bucket(t))
	for i := range 20 {
		e, err := c.Get(ctx, cachetest.Meta(fmt.Sprint(i)).Key, true)
		if err != nil || !digests[e.Digest] {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// A machine that knows the digests of entries takes no other results of their keys, signed or not. An entry with a name
// of its own takes the place of another result there.
func TestOtherResultsOfAKey(t *testing.T) {
	ctx, s := context.Background(), serve(t)
	a, b := open(t, s.bucket(t)), open(t, s.bucket(t))
	old := cachetest.Put(t, a, "x", files)
	a.flush(t, Sent{Entries: 1})
	other := cachetest.Put(t, b, "x", map[string]string{"f": "other"})
	b.flush(t, Sent{There: 1, Other: 1})
	wants := func(digest, name string) *machine {
		return open(t, s.bucket(t), func(o *Options) {
			o.Digests = map[cache.Key]string{old.Key: digest}
			if name != "" {
				o.Names = map[cache.Key]string{old.Key: name}
			}
		})
	}
	if _, err := wants(other.Digest, "").Ask(ctx, old.Key); !errors.Is(err, errRefused) {
		t.Errorf("another result was taken: %v", err)
	}
	if e, err := wants(old.Digest, "").Ask(ctx, old.Key); err != nil || e.Digest != old.Digest {
		t.Errorf("%v", err)
	}
	if _, err := b.Send(ctx, other, "jobs/x.entry"); err != nil { // an attacker does this
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := a.Lay(ctx, old.Key, "jobs/x.entry", old.Digest, dir); !errors.Is(err, errRefused) {
		t.Errorf("another result was laid out: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if object, err := wants("", "jobs/x.entry").Send(ctx, old, ""); object != "jobs/x.entry" || err != nil {
		t.Errorf("%s, %v", object, err)
	}
	if _, err := a.Lay(ctx, old.Key, "jobs/x.entry", old.Digest, dir); err != nil {
		t.Error(err)
	}
}

// TestFewRequests counts the requests of a machine that finds all results in the shared store.
func TestFewRequests(t *testing.T) {
	ctx, s := context.Background(), serve(t)
	var last cache.Entry
	for i := range 40 { // as many applies
		m := open(t, s.bucket(t))
		last = cachetest.Put(t, m, fmt.Sprint(i), map[string]string{"i": fmt.Sprint(i)})
		m.flush(t, Sent{Entries: 1})
	}
	m := open(t, s.bucket(t))
	lines := make([]string, 100_000)
	for i := range lines {
		meta := cachetest.Meta(fmt.Sprint("entry ", i))
		meta.Digest = meta.Key.String()
		lines[i] = (&index.Record{Meta: meta}).Line()
	}
	table, err := m.remote.read(ctx)
	if err == nil {
		err = m.remote.copies.Write(ctx, m.remote.Bucket, table, lines)
	}
	if err != nil {
		t.Fatal(err)
	}
	var own string
	for _, at := range []string{"the first time", "again"} {
		before := len(s.requests(""))
		m := open(t, s.bucket(t), func(o *Options) {
			if own == "" {
				own = o.Dir
			}
			o.Dir = own
		})
		for i := range lines {
			if _, err := m.Peek(ctx, cachetest.Meta(fmt.Sprint("entry ", i)).Key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Peek(ctx, last.Key); err != nil {
			t.Error(err)
		}
		n := len(s.requests("")) - before
		t.Logf("%s: %d requests", at, n)
		if n > 20 || at == "again" && n > 1 {
			t.Errorf("%s, %d requests", at, n)
		}
	}
}

// TestTrust checks that only entries that a key of trust signed are taken.
func TestTrust(t *testing.T) {
	ctx, place := context.Background(), bucket.NewDirectory(t.TempDir())
	public, private, _ := ed25519.GenerateKey(nil)
	_, stranger, _ := ed25519.GenerateKey(nil)
	signing := func(key ed25519.PrivateKey) func(*Options) {
		return func(o *Options) { o.Own, o.Trust = key, []ed25519.PublicKey{public} }
	}
	unsigned, foreign := open(t, place), open(t, place, func(o *Options) { o.Own = stranger })
	member, other := open(t, place, signing(private)), open(t, place, signing(nil))
	if !member.Puts() || other.Puts() || open(t, place, signing(stranger)).Puts() {
		t.Error("who puts is not who signs with a key of trust")
	}
	cachetest.Put(t, unsigned, "unsigned", files)
	unsigned.flush(t, Sent{Entries: 1})
	cachetest.Put(t, foreign, "foreign", files)
	foreign.flush(t, Sent{Entries: 1})
	cachetest.Put(t, member, "signed", files)
	member.flush(t, Sent{Entries: 1})
	for name, taken := range map[string]bool{"unsigned": false, "foreign": false, "signed": true} {
		if _, err := other.Get(ctx, cachetest.Meta(name).Key, true); (err == nil) != taken {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A signature belongs to its entry: it does not hold for another result of the key, or for other times.
	key := cachetest.Meta("signed").Key
	for name, change := range map[string]func(*cache.Meta){
		"other bytes":   func(m *cache.Meta) { m.Files = []cache.File{}; m.Bytes = 0 },
		"other content": func(m *cache.Meta) { m.Content = key },
	} {
		object := read(t, place, ObjectOf(key))
		line, _, _ := bytes.Cut(object, []byte("\n"))
		signature := line[bytes.LastIndexByte(line, ' ')+1:]
		forged := bytes.Replace(forge(t, object, change), []byte(" -\n"), fmt.Appendf(nil, " %s\n", signature), 1)
		if err := place.Replace(ctx, ObjectOf(key), bytes.NewReader(forged), int64(len(forged))); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, place, signing(nil)).Get(ctx, key, true); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("%s: %v", name, err)
		}
		if err := place.Replace(ctx, ObjectOf(key), bytes.NewReader(object), int64(len(object))); err != nil {
			t.Fatal(err)
		}
	}
	// The team replaced the entry of the stranger, so the index has two records of one key. The stranger, who trusts
	// another key, asks the entry itself.
	theirs := func(o *Options) {
		o.Own, o.Trust = stranger, []ed25519.PublicKey{stranger.Public().(ed25519.PublicKey)}
	}
	first := open(t, place, theirs)
	if _, err := first.Peek(ctx, cachetest.Meta("foreign").Key); err != nil {
		t.Error(err)
	}
	cachetest.Put(t, member, "foreign", map[string]string{"f": "ours"})
	member.flush(t, Sent{Entries: 1})
	if _, err := open(t, place, signing(nil)).Get(ctx, cachetest.Meta("foreign").Key, true); err != nil {
		t.Error(err)
	}
	if !strings.Contains(member.told(), "1 entries that no key of trust had signed were replaced") {
		t.Errorf("told %q", member.told())
	}
	first = open(t, place, theirs)
	if _, err := first.Peek(ctx, cachetest.Meta("foreign").Key); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("an entry that was replaced is still known: %v", err)
	}
	first.Warn()
	if len(first.warnings) != 1 || !strings.Contains(first.told(), "no key of trust signed: 1.") {
		t.Errorf("told %q", first.told())
	}
}

// TestManagement lists, checks and collects entries of a shared store.
func TestManagement(t *testing.T) {
	s, ctx := serve(t), context.Background()
	a := open(t, s.bucket(t))
	var keys []cache.Key
	for i := range 6 {
		keys = append(keys, cachetest.Put(t, a, fmt.Sprint(i), map[string]string{"f": strings.Repeat("x", 1000)}).Key)
	}
	a.flush(t, Sent{Entries: 6})
	list := func(m *machine) (found []cache.Key) {
		if err := m.Records(ctx, func(meta cache.Meta) { found = append(found, meta.Key) }); err != nil {
			t.Error(err)
		}
		return found
	}
	if n := len(list(open(t, s.bucket(t)))); n != 6 {
		t.Errorf("%d are listed, want 6", n)
	}
	// One is poisoned, one is gone, one is not in the index.
	b := s.bucket(t)
	err := b.Replace(ctx, ObjectOf(keys[0]), strings.NewReader("poison"), 6)
	if err := errors.Join(err, b.Remove(ctx, []string{ObjectOf(keys[1])})); err != nil {
		t.Fatal(err)
	}
	killed := open(t, s.bucket(t))
	extra := cachetest.Put(t, killed, "extra", files)
	killed.remote.wait() // what was put is not in the index when a process is killed
	var whole, damaged int
	checker := open(t, s.bucket(t))
	if err := checker.Check(ctx, func(_ cache.Key, err error) {
		if err == nil {
			whole++
		} else {
			damaged++
		}
	}); err != nil || whole != 5 || damaged != 1 {
		t.Errorf("Check: %d whole, %d damaged, %v", whole, damaged, err)
	}
	left := list(open(t, s.bucket(t)))
	if len(left) != 5 || !slices.Contains(left, extra.Key) || slices.Contains(left, keys[0]) {
		t.Errorf("after Check, %d are listed", len(left))
	}
	dry, err := checker.Collect(ctx, cache.GCOptions{MaxBytes: 3000, DryRun: true})
	if err != nil || len(list(checker)) != 5 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	r, err := checker.Collect(ctx, cache.GCOptions{MaxBytes: 3000})
	if err != nil || len(r.Removed) != len(dry.Removed) || r.KeptBytes > 3000 || r.Kept == 0 {
		t.Errorf("Collect: %+v, %v", r, err)
	}
	if n := len(list(open(t, s.bucket(t)))); n != r.Kept {
		t.Errorf("%d are listed, %d stay", n, r.Kept)
	}
	if _, err := open(t, s.bucket(t)).Get(ctx, r.Removed[0].Key, true); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("a removed entry: %v", err)
	}
	if _, err := a.Disk.Get(ctx, keys[2], true); err != nil {
		t.Errorf("the machine's own store: %v", err)
	}
}

// Stores that are opened one after the other, as by a page that follows applies, ask once.
func TestOneLook(t *testing.T) {
	ctx, s := context.Background(), serve(t)
	a := open(t, s.bucket(t))
	put := cachetest.Put(t, a, "one", map[string]string{"f": "content"})
	other := cachetest.Put(t, a, "two", map[string]string{"f": "other"})
	a.flush(t, Sent{Entries: 2})
	look, before := &Look{}, len(s.requests(""))
	for range 3 {
		m := open(t, s.bucket(t), func(o *Options) { o.Look = look })
		if _, err := m.Peek(ctx, put.Key); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.requests("")) - before; n != 2 || look.Away() != nil { // the list of segments, and the segment
		t.Errorf("%d requests; %v", n, look.Away())
	}

	b := open(t, s.bucket(t))
	b.BringOf(ctx, func(address string) bool { return address == put.Address && address != "" })
	for e, want := range map[*cache.Entry]bool{&put: true, &other: put.Address == other.Address} {
		if _, err := b.Disk.Get(ctx, e.Key, true); (err == nil) != want {
			t.Errorf("%s: %v, want %v", e.Address, err, want)
		}
	}

	s.put(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusForbidden) })
	look, before = &Look{}, len(s.requests(""))
	told := 0
	for range 3 {
		m := open(t, s.bucket(t), func(o *Options) { o.Look = look })
		if _, err := m.Peek(ctx, put.Key); !errors.Is(err, cache.ErrMiss) {
			t.Fatal(err)
		}
		told += len(m.warnings)
	}
	if n := len(s.requests("")) - before; n != 1 || told != 1 || look.Away() == nil {
		t.Errorf("%d requests, %d warnings; %v", n, told, look.Away())
	}

	// the index is read, and the store goes away
	s.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/entries/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
	half := &Look{}
	m := open(t, s.bucket(t), func(o *Options) { o.Look = half })
	if _, err := m.Get(ctx, put.Key, false); !errors.Is(err, cache.ErrMiss) || half.Away() == nil {
		t.Errorf("Get: %v, Away: %v", err, half.Away())
	}
}
