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

// Room is the disk space of a block's members, where no limit of their own applies.
type Room struct {
	dir          string // parent of the members' directories
	bytes, files int64  // free at the beginning
}

// shortBelow is the share of the room that must be free to go on.
const shortBelow = 0.05

// RoomIn returns the room below a directory, from now on.
func RoomIn(dir string) Room {
	bytes, files := fs.Free(dir)
	return Room{dir, bytes, files}
}

// Short reports whether nearly all of the room is used.
func (r Room) Short() bool {
	bytes, files := fs.Free(r.dir)
	return float64(bytes) < shortBelow*float64(r.bytes) || float64(files) < shortBelow*float64(r.files)
}

// LacksRoom reports whether an error is due to a full disk, by the system or by a command's output.
func LacksRoom(err error) bool {
	f, ok := errors.AsType[*engine.Failure](err)
	return failure.NoRoom(err) || ok && f.Rule == engine.DiskFull
}

// GiveUp removes the files of a member whose error is a full disk, or who wrote or printed too much, and shortens the
// log: they are of no use, and other members need the room. It returns the error.
func GiveUp(env *engine.Env, dir string, err error) error {
	if f, ok := errors.AsType[*engine.Failure](err); LacksRoom(err) || ok && f.Rule == engine.DiskExceeded {
		err = errors.Join(err, fs.RemoveTree(dir))
		if log, ok := env.Log.(interface{ Shorten() }); ok {
			log.Shorten()
		}
	}
	return err
}

// Taken returns the member that has taken more than half of the room, in bytes or in files, more than twice as much as
// the trusted member, and more than others outside of the block took meanwhile, with its failure; nil if there is none.
func (r Room) Taken(members []string, trusted string) (who string, f *engine.Failure) {
	freeBytes, freeFiles := fs.Free(r.dir)
	bytes, files := map[string]int64{}, map[string]int64{}
	for _, m := range members {
		used, _ := fs.Usage(true, filepath.Join(r.dir, m)) // nothing of a member that has left nothing
		bytes[m], files[m] = used.Bytes, used.Files
	}
	who, text := most(bytes, trusted, freeBytes, r.bytes, func(n int64) string { return units.BytesSize(float64(n)) })
	if who == "" {
		who, text = most(files, trusted, freeFiles, r.files, func(n int64) string { return fmt.Sprintf("%d files", n) })
	}
	if who == "" {
		return "", nil
	}
	return who, &engine.Failure{Failure: failure.Failure{
		Class: failure.Permanent, Rule: engine.DiskExceeded, Stage: "run",
		Message: "it takes " + text + " that its block has on the disk",
		Remedy:  "let it leave less in $OUT, or free some space and apply with -retry-failed"}}
}

// most is Taken for one amount, which the members hold. begun is what was free at the beginning.
func most(held map[string]int64, trusted string, free, begun int64, text func(int64) string) (who, share string) {
	all := free
	for _, n := range held {
		all += n
	}
	for m, n := range held { // at most one has more than half
		if m != trusted && n > all/2 && n/2 > held[trusted] && n > begun-all {
			return m, text(n) + " of the " + text(all)
		}
	}
	return "", ""
}
