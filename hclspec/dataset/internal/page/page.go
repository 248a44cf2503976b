package page

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

const (
	maxElements = 100_000  // elements of lists in the metadata
	maxPage     = 64 << 20 // bytes of one page
	maxPages    = 1 << 30  // bytes of all pages
	deepest     = 16       // levels of nested structures
)

// CheckFooter checks that the footer lies in the file: the library allocates the size in the last bytes.
func CheckFooter(data []byte) error {
	const frame = 12 // the magic twice, and the length between them
	if len(data) < frame || string(data[len(data)-4:]) != "PAR1" {
		return io.ErrUnexpectedEOF
	}
	if n := binary.LittleEndian.Uint32(data[len(data)-8:]); int64(n) > int64(len(data)-frame) {
		return fmt.Errorf("its footer has %d bytes, the file %d", n, len(data))
	}
	footer := data[len(data)-8-int(binary.LittleEndian.Uint32(data[len(data)-8:])) : len(data)-8]
	w := thrift{data: footer}
	return w.structure(deepest, nil, nil)
}

// typeV2 is the type of a data page of version 2; headerV2 is the field with its own header.
const typeV2, headerV2 = 3, 8

// CheckAll checks the sizes in the headers of all pages, and that no page has more values than a table of rows may
// have.
func CheckAll(f *parquet.File, data []byte, rows int) error {
	total := int64(0)
	for _, group := range f.Metadata().RowGroups {
		for i, column := range group.Columns {
			meta := &column.MetaData
			// the library decompresses the pages of all groups by the codec of the first
			codec := f.Metadata().RowGroups[0].Columns[i].MetaData.Codec
			at := meta.DataPageOffset
			if first := meta.DictionaryPageOffset; first > 0 && first < at {
				at = first
			}
			end := at + meta.TotalCompressedSize
			if at < 0 || end < at || end > int64(len(data)) {
				return errThrift
			}
			for at < end {
				next, size, err := check(codec, data[at:end], int64(rows)*8)
				if err != nil {
					return err
				}
				if total += size; total > maxPages {
					return fmt.Errorf("its pages have more than %d bytes", maxPages)
				}
				at += next
			}
		}
	}
	return nil
}

// check checks the page at the start of data and its header; values is the largest number of values. It returns the
// offset of the next page and the size of this page without compression.
func check(codec format.CompressionCodec, data []byte, values int64) (next, size int64, err error) {
	w := thrift{data: data}
	compressed, most := int64(-1), int64(0)
	kind, levels, isCompressed := int64(0), [2]int64{}, true // lengths of the levels, which are never compressed
	err = w.structure(deepest, nil, func(path []int64, n int64) {
		switch {
		case len(path) == 1 && path[0] == 1:
			kind = n
		case len(path) == 1 && path[0] == 2:
			size = n
		case len(path) == 1 && path[0] == 3:
			compressed = n
		case len(path) == 2: // numbers of values, of nulls and of rows, and sizes of levels
			most = max(most, n)
			switch {
			case path[0] == headerV2 && (path[1] == 5 || path[1] == 6):
				levels[path[1]-5] = n
			case path[0] == headerV2 && path[1] == 7:
				isCompressed = n == 1
			}
		}
	})
	if kind != typeV2 {
		levels, isCompressed = [2]int64{}, true
	}
	plain := levels[0] + levels[1]
	switch {
	case err != nil:
		return 0, 0, err
	case compressed < 0 || compressed > int64(len(w.data)) || size < 0 || size > maxPage || most > values ||
		min(levels[0], levels[1]) < 0 || max(levels[0], levels[1]) > compressed || plain > compressed:
		return 0, 0, errThrift
	}
	if isCompressed {
		err = checkCompressed(codec, w.data[plain:compressed], size)
	}
	return int64(len(data)-len(w.data)) + compressed, size, err
}
