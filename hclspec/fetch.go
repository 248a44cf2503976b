package hclspec

import (
	"cmp"
	"net/url"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/hclspec/lockfile"
	"github.com/benchgraph/benchgraph/internal/printable"
)

func fetchSchema() *eval.Schema {
	return &eval.Schema{Kind: "fetch", Label: true, Key: []string{"url", "sha256"},
		Free: []string{"for_each", "max_size"}}
}

// MaxDownload is the largest size in bytes of a download without max_size.
const MaxDownload = 16 << 30

func decodeFetch(r reader, b Block) {
	r.Need("url", "the URL of the file")
	f := Fetch{Block: b, URL: r.Str("url"), SHA256: r.Str("sha256"), MaxSize: cmp.Or(r.Size("max_size"), MaxDownload),
		URLRange: r.At("url")}
	if f.URL != "" {
		r.download(f.URLRange, f.URL)
	}
	if f.SHA256 != "" && !lockfile.IsSHA256(f.SHA256) {
		r.Fail(r.At("sha256"), "Invalid digest", "sha256 must have 64 lower-case hexadecimal digits.")
	}
	if f.SHA256 == "" && r.l.options.Lock != nil {
		f.SHA256 = r.l.options.Lock.Fetches[f.URL].SHA256
	}
	r.l.spec.Fetches = append(r.l.spec.Fetches, f)
}

// download refuses a URL that is not http, https or file.
func (r reader) download(at hcl.Range, location string) {
	if u, err := url.Parse(location); err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "file" {
		r.Fail(at, "Invalid URL", "%q is not an http, https or file URL.", printable.WithoutPasswords([]byte(location)))
	}
}
