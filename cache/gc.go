package cache

import (
	"errors"
	"strings"
	"time"
)

// GCOptions say which entries a garbage collection may remove. Without limits, it removes everything that Keep does not
// hold; with neither limits nor Keep, it removes nothing.
type GCOptions struct {
	MaxBytes int64          // remove the least recently used until the rest has at most so many; 0: no limit
	MaxAge   time.Duration  // remove entries that were not used for so long; 0: no limit
	Keep     func(Key) bool // reports whether an entry stays, whatever the limits; nil: none does
	DryRun   bool           // only tell which entries would be removed
}

// GCResult is the outcome of a garbage collection, or of a dry run.
type GCResult struct {
	Removed      []Meta // without Text and Files; least recently used first
	RemovedBytes int64
	Kept         int
	KeptBytes    int64 // more than MaxBytes when Keep holds more
	Quarantined  int   // damaged entries whose remains were removed
}

// Takes reports whether an entry is to be removed; bytes is the size of all entries that are still kept.
func (o GCOptions) Takes(key Key, used time.Time, bytes int64) bool {
	if o.Keep != nil && o.Keep(key) {
		return false
	}
	if o.MaxAge == 0 && o.MaxBytes == 0 {
		return o.Keep != nil
	}
	return o.MaxAge > 0 && time.Since(used) > o.MaxAge || o.MaxBytes > 0 && bytes > o.MaxBytes
}

// ErrBusy is wrapped by the error of a GC while other processes have the store open.
var ErrBusy = errors.New("the store is in use by another process")

// UseGrain is the precision of the time of an entry's last use. Writing it at every use would wear out disks.
const UseGrain = time.Hour

// Superseded returns the key to which the result of an attempt moves when another result takes its place under key.
func Superseded(key Key, attempt string) Key { return SupersededText(key, attempt).Key() }

// IsSuperseded reports whether a description is that of a result that was moved so.
func IsSuperseded(text string) bool { return strings.HasPrefix(text, Describe("superseded").Text()) }

// SupersededText returns the description whose key is Superseded.
func SupersededText(key Key, attempt string) *Description {
	d := Describe("superseded")
	d.Add("key", key.String())
	d.Add("attempt", attempt)
	return d
}
