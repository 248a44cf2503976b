package workdir

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/docker/go-units"

	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Room is what the members of a block have of the disk, where nothing bounds what each may write.
type Room struct {
	dir  string // in which each member has a directory with what it left
	free int64  // bytes at the beginning
}

// shortBelow is the share of the room below which what is left of it is too little to go on with.
const shortBelow = 0.05

// RoomIn is the room of those who leave something in a directory from now on.
func RoomIn(dir string) Room { return Room{dir, fs.Free(dir)} }

// Short reports whether nearly nothing is left of the room that there was.
func (r Room) Short() bool { return float64(fs.Free(r.dir)) < shortBelow*float64(r.free) }

// LacksRoom reports whether an error is that of a full disk, or what a command said of one.
func LacksRoom(err error) bool {
	f, ok := errors.AsType[*engine.Failure](err)
	return failure.NoRoom(err) || ok && f.Rule == engine.DiskFull
}

// GiveUp removes what a member left whose error is that of a full disk: nothing of it counts, and the others need the
// room. It returns the error.
func GiveUp(dir string, err error) error {
	if LacksRoom(err) {
		err = errors.Join(err, fs.RemoveTree(dir))
	}
	return err
}

// Taken finds the member that has left more than half of all that members have left and that is free, and more than
// twice as much as the trusted one, and returns its failure; nil: there is none.
func (r Room) Taken(members []string, trusted string) (who string, f *engine.Failure) {
	held := map[string]int64{}
	all := fs.Free(r.dir)
	for _, m := range members {
		held[m], _ = fs.Usage(filepath.Join(r.dir, m)) // 0 of one that has left nothing
		all += held[m]
	}
	for _, m := range members {
		if m != trusted && 2*held[m] > all && held[m] > 2*held[trusted] {
			return m, &engine.Failure{Failure: failure.Failure{Class: failure.Permanent, Rule: "disk_exceeded",
				Stage: "run", Message: fmt.Sprintf("what it left takes %s of the %s that its block has of the disk",
					units.BytesSize(float64(held[m])), units.BytesSize(float64(all))),
				Remedy: "let it leave less in $OUT, or free some space and apply with -retry-failed"}}
		}
	}
	return "", nil
}
