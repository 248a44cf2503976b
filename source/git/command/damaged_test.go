package command_test

import (
	"fmt"
	"testing"

	"github.com/benchgraph/benchgraph/source/git/command"
)

func TestDamaged(t *testing.T) {
	const id = "3ba4dd39808b3e8db4db27c574f55e7a5e8d43c1"
	for said, want := range map[string]bool{
		"fatal: loose object " + id + " (stored in objects/3b/a4) is corrupt":                   true,
		"error: inflate: data stream error (incorrect header check)\nfatal: not a valid object": true,
		"error: object file objects/3b/a4 is empty":                                             true,
		"fatal: unable to stream " + id + " to stdout":                                          true,
		"fatal: unable to read tree " + id:                                                      true,
		"error: unable to unpack " + id + " header":                                             true,
		"fatal: bad object " + id:                                                               true,
		"fatal: missing blob " + id:                                                             true,
		"error: packfile objects/pack/a.pack does not match index":                              true,
		"fatal: ambiguous argument 'x': unknown revision or path not in the working tree.":      false,
		"fatal: couldn't find remote ref refs/heads/x":                                          false,
		"fatal: unable to access 'https://example.org/': The requested URL returned error: 404": false,
		"error: patch failed: a.txt:1":                                                          false,
	} {
		err := fmt.Errorf("checkout: %w", &command.ExitError{Verb: "cat-file", Stderr: "warning: x\n" + said + "\n"})
		if line, remedy := command.Damaged(err); (line != "") != want || (remedy != "") != want {
			t.Errorf("%q: %q, %q", said, line, remedy)
		}
	}
}
