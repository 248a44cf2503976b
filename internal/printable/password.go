package printable

import (
	"bytes"
	"regexp"
)

// address matches the part of an address before a password, the password and the @. A reference instead of the
// password does not match.
var address = regexp.MustCompile(`(://[^/\s"'@:]*:)((?:[^/\s"'@$]|\$[^{/\s"'@])+)@`)

// Password returns the position of the first password in an address of a text: the bytes [from, to). ok is false if
// there is none.
func Password(text []byte) (from, to int, ok bool) {
	at := address.FindSubmatchIndex(text)
	if at == nil {
		return 0, 0, false
	}
	return at[4], at[5], true
}

// WithoutPasswords returns a text with an x for each byte of a password in an address, so that positions do not
// change.
func WithoutPasswords(text []byte) []byte {
	if !bytes.Contains(text, []byte("://")) {
		return text
	}
	text = bytes.Clone(text)
	for begin := 0; ; {
		from, to, ok := Password(text[begin:])
		if !ok {
			return text
		}
		copy(text[begin+from:begin+to], bytes.Repeat([]byte("x"), to-from))
		begin += to
	}
}
