package download

import (
	"net/url"
	"path"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

// FileName is the last part of the URL's path, with _ for what a shell would not take as it stands: the path of a
// fetched file is put into commands.
func FileName(address string) string {
	if u, err := url.Parse(address); err == nil {
		if name := path.Base(u.Path); name != "." && name != "/" && name != ".." {
			return unsafeInShell().ReplaceAllString(name, "_")
		}
	}
	return "download"
}

var unsafeInShell = lazyregexp.New(`[^\pL\pN._+@%=,:-]`)

// WithoutPassword is an address as it is shown.
func WithoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}
