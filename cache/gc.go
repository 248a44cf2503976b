package cache

import (
	"errors"
	"strings"
	"time"
)

// GCOptions say what a collection of garbage may remove. Without limits, everything goes that Keep does not hold; with
// neither limits nor Keep, nothing.
type GCOptions struct {
	MaxBytes int64          // the least recently used go until the rest has so many bytes at most; 0: no limit
	MaxAge   time.Duration  // entries that were not used for so long go; 0: no limit
	Keep     func(Key) bool // these stay, whatever the limits; nil: none
	DryRun   bool           // remove nothing, only say what would go
}

// GCResult is what a collection of garbage did, or would do.
type GCResult struct {
	Removed      []Meta // without Text and Files; least recently used first
	RemovedBytes int64
	Kept         int
	KeptBytes    int64 // more than MaxBytes when Keep holds more
	Quarantined  int   // damaged entries whose remains were removed
}

// Takes reports whether an entry goes, when those that stay so far have so many bytes.
func (o GCOptions) Takes(key Key, used time.Time, bytes int64) bool {
	if o.Keep != nil && o.Keep(key) {
		return false
	}
	if o.MaxAge == 0 && o.MaxBytes == 0 {
		return o.Keep != nil
	}
	return o.MaxAge > 0 && time.Since(used) > o.MaxAge || o.MaxBytes > 0 && bytes > o.MaxBytes
}

// ErrBusy is wrapped by the error of a GC that other processes keep from collecting.
var ErrBusy = errors.New("the store is in use by another process")

// UseGrain is how exactly the time of an entry's last use is known. Writing it at every use would wear disks.
const UseGrain = time.Hour

// Superseded is the key of the result of an attempt after another one took its place under the key that both have.
func Superseded(key Key, attempt string) Key { return SupersededText(key, attempt).Key() }

// IsSuperseded reports whether the text of an entry is that of one whose place another one has taken.
func IsSuperseded(text string) bool { return strings.HasPrefix(text, Describe("superseded").Text()) }

// SupersededText describes that result.
func SupersededText(key Key, attempt string) *Description {
	d := Describe("superseded")
	d.Add("key", key.String())
	d.Add("attempt", attempt)
	return d
}
