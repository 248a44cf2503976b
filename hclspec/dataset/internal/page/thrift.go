// Package page checks the sizes that a Parquet file states about itself. The library that reads Parquet allocates
// memory by them.
package page

import (
	"encoding/binary"
	"errors"
)

var errThrift = errors.New("its metadata are damaged")

// thrift reads over a structure of Thrift's compact protocol without decoding it.
type thrift struct {
	data     []byte
	elements int
}

// structure reads over one structure and calls number for each numeric field. The path of a field in a nested structure
// has the identifiers of both.
func (w *thrift) structure(depth int, path []int64, number func(path []int64, value int64)) error {
	field := int64(0)
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if delta := int64(head >> 4); delta > 0 {
			field += delta
		} else if field, err = w.signed(); err != nil {
			return err
		}
		at := append(path[:len(path):len(path)], field)
		if err := w.value(int(head&15), depth, at, number); err != nil {
			return err
		}
	}
}

// value reads over one value of a type of the protocol.
func (w *thrift) value(kind, depth int, path []int64, number func([]int64, int64)) error {
	switch kind {
	case 1, 2: // a bool is in the head of its field
		if number != nil {
			number(path, int64(2-kind))
		}
		return nil
	case 3:
		return w.skip(1)
	case 4, 5, 6:
		n, err := w.signed()
		if err == nil && number != nil {
			number(path, n)
		}
		return err
	case 7:
		return w.skip(8)
	case 8:
		n, err := w.unsigned()
		if err != nil {
			return err
		}
		return w.skip(n)
	case 9, 10:
		return w.list(depth, path)
	case 12:
		if depth == 0 {
			return errThrift
		}
		return w.structure(depth-1, path, number)
	}
	return errThrift // Parquet has no maps
}

func (w *thrift) list(depth int, path []int64) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n, kind := uint64(head>>4), int(head&15)
	if n == 15 {
		if n, err = w.unsigned(); err != nil {
			return err
		}
	}
	if w.elements += int(min(n, maxElements+1)); w.elements > maxElements || n > uint64(len(w.data)) {
		return errThrift
	}
	for range n {
		if kind == 1 || kind == 2 { // in a list, a bool has a byte of its own
			err = w.skip(1)
		} else {
			err = w.value(kind, depth, path, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *thrift) byte() (byte, error) {
	if len(w.data) == 0 {
		return 0, errThrift
	}
	b := w.data[0]
	w.data = w.data[1:]
	return b, nil
}

func (w *thrift) skip(n uint64) error {
	if n > uint64(len(w.data)) {
		return errThrift
	}
	w.data = w.data[n:]
	return nil
}

func (w *thrift) unsigned() (uint64, error) {
	n, size := binary.Uvarint(w.data)
	if size <= 0 {
		return 0, errThrift
	}
	w.data = w.data[size:]
	return n, nil
}

func (w *thrift) signed() (int64, error) {
	n, err := w.unsigned()
	return int64(n>>1) ^ -int64(n&1), err
}
