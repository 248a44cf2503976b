package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/cache"
)

// record is one line: an attempt, or the IDs of failures that are no longer remembered.
type record struct {
	Attempt *Attempt `json:"attempt,omitempty"`
	Forget  []string `json:"forget,omitempty"`
}

// checksum tells damaged lines from whole ones.
func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

func encodeRecord(r record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(text) > longestRecord-10 {
		return nil, fmt.Errorf("record of %d bytes is too long", len(text))
	}
	return fmt.Appendf(nil, "%08x %s\n", checksum(text), text), nil
}

// decodeRecord decodes a line of the journal. words is the same line as a string: the caller converts all lines at
// once, which costs less than a conversion of each line.
func decodeRecord(line []byte, words string) (record, error) {
	var r record
	sum, text, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(line) > longestRecord {
		return r, errors.New("no record")
	}
	var want [8]byte
	hex.Encode(want[:], binary.BigEndian.AppendUint32(nil, checksum(text)))
	if string(sum) != string(want[:]) {
		return r, errors.New("wrong checksum")
	}
	if a, ok := plainSuccess(words[len(sum)+1:]); ok {
		return record{Attempt: &a}, nil
	}
	err := json.Unmarshal(text, &r)
	return r, err
}

// plainSuccess reads the record of an attempt that succeeded without devices, as encodeRecord writes it; false for
// other records. Nearly all records are of this kind, and decoding them as JSON took longer than the rest of a plan.
func plainSuccess(text string) (a Attempt, ok bool) {
	ok = true
	field := func(label, end string) (value string) {
		rest, labelled := strings.CutPrefix(text, label)
		value, text, ok = cutUnescaped(rest, end, ok && labelled)
		return value
	}
	a.ID = field(`{"attempt":{"id":"`, `"`)
	a.Run = field(`,"run":"`, `"`)
	a.Address = field(`,"address":"`, `"`)
	key := field(`,"key":"`, `"`)
	number := field(`,"number":`, `,`)
	start := field(`"start":"`, `"`)
	duration := field(`,"duration":`, `}}`)
	if !ok || text != "" {
		return a, false
	}
	var errs [4]error
	a.Key, errs[0] = cache.ParseKey(key)
	a.Number, errs[1] = strconv.Atoi(number)
	a.Start, errs[2] = time.Parse(time.RFC3339Nano, start)
	nanoseconds, err := strconv.ParseInt(duration, 10, 64)
	a.Duration, errs[3] = time.Duration(nanoseconds), err
	return a, errs == [4]error{}
}

// cutUnescaped cuts text at the first end, and undoes the escapes \" and \\; any other escape fails.
func cutUnescaped(text, end string, ok bool) (value, rest string, _ bool) {
	value, rest, found := strings.Cut(text, end)
	if !ok || !found {
		return "", "", false
	}
	if !strings.Contains(value, `\`) {
		return value, rest, true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == end[0]:
			return b.String(), text[i+1:], len(end) == 1
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		default:
			return "", "", false
		}
	}
	return "", "", false
}

// decoded has the records of some lines.
type decoded struct {
	records        []record
	lines, damaged int
}

// decodeLines decodes whole lines, on all cores if there are many: everything that needs the journal waits for it.
func decodeLines(data []byte) []decoded {
	const least = 64 << 10 // bytes that are worth a goroutine
	parts := make([]decoded, min(runtime.GOMAXPROCS(0), 1+len(data)/least))
	var workers sync.WaitGroup
	for i := range parts {
		share := data
		if left := len(parts) - i; left > 1 {
			share = data[:len(data)/left]
			share = data[:bytes.LastIndexByte(share, '\n')+1]
		}
		data = data[len(share):]
		workers.Go(func() { parts[i].decode(share) })
	}
	workers.Wait()
	return parts
}

func (d *decoded) decode(data []byte) {
	d.records = make([]record, 0, bytes.Count(data, []byte{'\n'}))
	words := string(data)
	for at := 0; at < len(data); {
		end := at + bytes.IndexByte(data[at:], '\n')
		line, text := data[at:end], words[at:end]
		at = end + 1
		d.lines++
		if len(line) == 0 {
			continue
		}
		r, err := decodeRecord(line, text)
		if err != nil {
			d.damaged++
			continue
		}
		d.records = append(d.records, r)
	}
}
