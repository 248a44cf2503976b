// Package memo remembers a plan: its nodes with their states, and the files, results and images that the plan read. The
// next plan evaluates only the nodes for which one of these has changed. Place has both functions: Recall and Remember.
//
// A memo is never trusted further than it can be checked: everything in it rests on stamps, digests and sizes that are
// compared anew each time. If the memo is missing, damaged or of another version, the plan only takes longer.
package memo

import (
	"hash/crc32"
	"time"

	"github.com/benchgraph/benchgraph/cache"
	"github.com/benchgraph/benchgraph/device"
	"github.com/benchgraph/benchgraph/engine"
)

// memo is the record of one plan.
type memo struct {
	For    string    // text of all that the plan depends on, beside files; if it differs, the memo does not hold
	World  []thing   // files and directories of the plan as a whole; if one has changed, the memo does not hold
	Files  []thing   // the project's files that single nodes depend on, all of them regular
	Nodes  []node    // each after the nodes that it waits for
	Still  *still    // lets nodes stand without a result; nil: they are planned anew
	Used   time.Time // when the store was last told that the results are in use, to the second
	Common []byte    // JSON of common: needed to make any node anew

	blocks   [][]byte // texts of the nodes' blocks, one after the other; set only in a new memo
	identity uint32   // of the file with the blocks
}

// still has the conditions under which nodes without a result stand. They stand all together, or none does.
type still struct {
	Keys     []cache.Key // under which the store had nothing
	Contents []cache.Key // under which the store had nothing, as content keys
	Gone     []gone
}

// gone is an entry of which a part outside of the store is gone.
type gone struct {
	Entry   cache.Outline
	Outside string // the missing part, for its owner to ask about
}

// thing is a file, a directory or a missing name, as the plan saw it.
type thing struct {
	Path   string // absolute, or relative to the project's directory
	Is     kind
	Stamp  cache.Stamp // zero: it had changed so shortly before that the stamp cannot tell
	SHA256 string      // of a file, in hexadecimal digits
	Exec   bool        // a file that can be executed
}

// kind says what a thing is, and which part of it must be unchanged.
type kind uint8

// The kinds of things.
const (
	file        kind = iota // a regular file with the same bytes
	regularFile             // a regular file with any bytes
	nothing                 // no regular file
	directory               // a directory with the same names in it
)

// node is a node of the plan with the facts that the plan found.
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
	Excluded bool          // the file excludes the node, for Reason
	Action   engine.Action // of a node that stands without a result, by memo.Still; empty: it does not stand so
	Digest   string        // of its result; empty: it had none
	Entry    cache.Outline // of its result
	Files    []int32       // indices into memo.Files
	Outside  string        // the part of its result outside of the store, for its owner to ask about; empty: none
	Origin   *engine.Origin
	Block    block // the task, to make the node anew without the rest of the project; zero: that is not possible
}

// block is the position of a text in the file of blocks. The texts have a file of their own, since few are ever read.
type block struct {
	offset, length int
	sum            uint32
}

// IsZero reports whether there is no text.
func (b block) IsZero() bool { return b.length == 0 }

// addBlocks adds the texts of the blocks of all nodes. A nil text means that the node has no block.
func (m *memo) addBlocks(texts [][]byte) {
	m.blocks = texts
	offset := 0
	for i, text := range texts {
		if text != nil {
			m.Nodes[i].Block = block{offset, len(text), crc32.Checksum(text, table)}
			offset += len(text)
			m.identity = crc32.Update(m.identity, table, text)
		}
	}
}

// unused reports whether it is time to tell the store again that the results are in use. Each is then checked closely.
func (m *memo) unused(now time.Time) bool { return now.Sub(m.Used).Abs() > cache.UseGrain }

// stands reports whether the node need not be planned again unless something changes.
func (n *node) stands() bool { return n.Excluded || n.Digest != "" || n.Action != "" }
