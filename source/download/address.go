package download

import (
	"net/url"
	"path"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// FileName returns the last part of the URL's path, with _ in place of characters that a shell treats specially:
// commands contain the path of the fetched file.
func FileName(address string) string {
	if u, err := url.Parse(address); err == nil {
		if name := path.Base(u.Path); name != "." && name != "/" && name != ".." {
			return unsafeInShell().ReplaceAllString(name, "_")
		}
	}
	return "download"
}

var unsafeInShell = lazyregexp.New(`[^\pL\pN._+@%=,:-]`)

// WithoutPassword returns an address for messages.
func WithoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}
