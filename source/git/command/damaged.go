package command

import (
	"errors"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var damaged = lazyregexp.New(`(?im)^.*(loose object .* is corrupt|object file .* is empty|inflate: |` +
	`(unable to (read|unpack|parse|stream)|could not (read|parse)) (object|tree|commit|[0-9a-f]{40}|.* header)|` +
	`bad (object|tree) |missing (blob|tree|commit|object)|pack(file)? .*(is corrupt|does not match|mismatch)|` +
	`unknown object type|failed to read object|repository corruption).*$`)

// Damaged returns the line in which git reports damaged objects, and the remedy. If the error has another cause, both
// are empty. Damage is not the fault of a revision or a patch.
func Damaged(err error) (line, remedy string) {
	if e, ok := errors.AsType[*ExitError](err); ok {
		line = damaged().FindString(e.Stderr)
	}
	if line != "" {
		remedy = "look at the repository with git fsck --full, and fetch or clone it anew; if it is a mirror of " +
			"benchgraph's, remove its directory below .benchgraph/mirrors"
	}
	return line, remedy
}
