// Package memo remembers a plan: its nodes with their states, and the files, results and images that the plan read. The
// next plan evaluates only the nodes for which one of these has changed. Place has both functions: Recall and Remember.
//
// A memo is never trusted further than it can be checked: everything in it hangs on stamps, digests and sizes that are
// compared anew each time. One that is missing, damaged or from another version only costs the time that it saves.
package memo

import (
	"hash/crc32"
	"slices"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

// memo is one plan, written down.
type memo struct {
	For    string    // what beside files the plan depends on: if that is different, nothing of the memo holds
	World  []thing   // what the plan as a whole depends on: likewise
	Files  []thing   // the project's files that single nodes depend on, all of them regular
	Nodes  []node    // each after all that it waits for
	Still  *still    // what nodes without a result depend on, if some of them stand; nil: none does
	Used   time.Time // when the store was last told that the results are in use, to the second
	Common []byte    // what the owner needs to make nodes anew, whichever they are

	blocks   []byte // of nodes, one after the other, when they have been added and not read
	identity uint32 // of the file with the blocks
}

// still is what has to be as it was so that nodes without a result stand. Only all nodes together do then.
type still struct {
	Keys     []cache.Key // under which the store had nothing
	Contents []cache.Key // likewise, of contents
	Gone     []gone
}

// gone is a result of which something that is not in the store is gone.
type gone struct {
	Entry   cache.Outline
	Outside string // what that was, for its owner to ask about
}

// thing is something in the file system as it was looked at.
type thing struct {
	Path   string      // absolute, or relative to the project's directory
	Is     kind        //
	Stamp  cache.Stamp // zero: it had been changed too shortly before to be recognised by its stamp
	SHA256 string      // of a file, in hexadecimal digits
	Exec   bool        // of a file: it can be executed
}

// kind is what a thing is, and what of it counts.
type kind uint8

// The kinds of things.
const (
	file        kind = iota // a regular file with these bytes
	regularFile             // a regular file, whatever is in it
	nothing                 // no regular file, if anything
	directory               // a directory with these names in it
)

// node is what the plan found out of one node.
type node struct {
	Address  string
	Kind     string
	Place    string // file:line of its block
	Request  device.Request
	Estimate time.Duration
	Needs    []int32 // indices into memo.Nodes
	Order    []int32
	After    []int32
	Key      cache.Key
	Reason   string
	Excluded bool          // declared not to be run, for Reason
	Action   engine.Action // Still: of a node that stands without a result; empty: it does not
	Digest   string        // of its result; empty: it had none, and is to be looked at if it does not stand without one
	Entry    cache.Outline // of its result
	Files    []int32       // indices into memo.Files
	Outside  string        // what of its result is not in the store, for its owner to ask about; empty: nothing
	Origin   *engine.Origin
	Block    block // what its owner can make it anew from, without all the others; zero: it cannot
}

// block is the place of a text in a file of its own, since few of them are ever read.
type block struct {
	offset, length int
	sum            uint32
}

// IsZero says that there is no text.
func (b block) IsZero() bool { return b.length == 0 }

// addBlocks keeps the texts of the blocks of all nodes; nil: a node has none.
func (m *memo) addBlocks(texts [][]byte) {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	m.blocks = slices.Grow(m.blocks, size) // once: they take megabytes
	for i, text := range texts {
		if text != nil {
			m.Nodes[i].Block = m.add(text)
		}
	}
}

func (m *memo) add(text []byte) block {
	b := block{len(m.blocks), len(text), crc32.Checksum(text, table)}
	m.blocks = append(m.blocks, text...)
	return b
}

// unused says that the store is to be told again that the results are in use, for which each is looked at more closely.
func (m *memo) unused(now time.Time) bool { return now.Sub(m.Used).Abs() > cache.UseGrain }

// stands says that there is nothing to be found out of the node as long as nothing changes.
func (n *node) stands() bool { return n.Excluded || n.Digest != "" || n.Action != "" }
