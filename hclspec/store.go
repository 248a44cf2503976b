package hclspec

import (
	"net/url"
	"path"
	"strings"

	"github.com/benchgraph/benchgraph/hclspec/internal/eval"
	"github.com/benchgraph/benchgraph/internal/sshkey"
)

// Store is a store that machines share.
type Store struct {
	URL      string   // s3://BUCKET/PREFIX, or file:///DIRECTORY
	Dir      string   // directory of a file store; empty: it is on a server
	Endpoint string   // of s3: the server's http or https URL; empty: Amazon's
	Region   string   // of s3; empty: that of the environment or the server
	ReadOnly bool     // nothing is put there
	JobRole  string   // of s3: ARN of the role whose credentials jobs get; empty: they have their own
	Trust    []string // public ed25519 keys, one of which must have signed each entry; empty: no check
}

func storeSchema() *eval.Schema {
	return &eval.Schema{Kind: "store", Free: []string{"url", "endpoint", "region", "read_only", "trust", "job_role"}}
}

func (r reader) store() *Store {
	s := &Store{
		URL: r.Str("url"), Endpoint: r.Str("endpoint"), Region: r.Str("region"),
		ReadOnly: r.Bool("read_only"), Trust: r.Strs("trust"), JobRole: r.Str("job_role"),
	}
	r.Need("url", "the place that machines share, s3://BUCKET/PREFIX or file:///DIRECTORY")
	u, ok := r.location("url", s.URL)
	if ok && u.Scheme == "file" {
		s.Dir = u.Path
	}
	switch {
	case !ok:
	case u.Scheme != "s3" && u.Scheme != "file":
		r.Fail(r.At("url"), "Unknown kind of store", "%q begins neither with s3:// nor with file://.", s.URL)
	case u.RawQuery != "" || u.Fragment != "":
		r.Fail(r.At("url"), "Invalid store", "%q has more than a place. "+
			"The server and the region are arguments of their own, endpoint and region.", s.URL)
	case u.Scheme == "s3" && u.Host == "":
		r.Fail(r.At("url"), "Invalid store", "%q names no bucket. Write s3://BUCKET or s3://BUCKET/PREFIX.", s.URL)
	case u.Scheme == "file" && (u.Host != "" || !path.IsAbs(u.Path) || path.Clean(u.Path) == "/"):
		r.Fail(r.At("url"), "Invalid store", "%q is no directory. "+
			"Write file:// and an absolute path, as in file:///shared/benchgraph.", s.URL)
	case u.Scheme == "file" && s.Endpoint+s.Region+s.JobRole != "":
		r.Fail(r.Block.Range, "Unused argument",
			"endpoint, region and job_role are those of an s3:// store. Remove them.")
	}
	if s.JobRole != "" && (!strings.HasPrefix(s.JobRole, "arn:") || strings.Count(s.JobRole, ":") < 5) {
		r.Fail(r.At("job_role"), "Invalid role", "%q is no ARN. Write it like arn:aws:iam::123456789012:role/jobs.",
			s.JobRole)
	}
	if e, ok := r.location("endpoint", s.Endpoint); ok && !isServer(e) {
		r.Fail(r.At("endpoint"), "Invalid endpoint", "%q is no server. "+
			"Write it like https://minio.example.org:9000, without a path.", s.Endpoint)
	}
	for i, key := range s.Trust {
		if _, err := sshkey.ParsePublic(key); err != nil {
			r.Fail(r.AtItem("trust", i), "Invalid key", "%q is no public ed25519 key. "+
				"Write the line that ssh-keygen -t ed25519 wrote into the file that ends in .pub.", key)
		}
	}
	return s
}

// isServer reports whether a URL names an http or https server, without a path or a query.
func isServer(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/")+u.RawQuery == ""
}

// location reads a URL, which must not hold a password: everybody may read the file.
func (r reader) location(name, text string) (*url.URL, bool) {
	if text == "" {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil {
		r.Fail(r.At(name), "Invalid URL", "The value of %s is no URL.", name)
		return nil, false
	}
	if u.User != nil {
		r.Fail(r.At(name), "Credentials in a URL", "The value of %s holds a name or a password, "+
			"which the file and logs would show. Remove it, "+
			"and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.", name)
		return nil, false
	}
	return u, true
}
