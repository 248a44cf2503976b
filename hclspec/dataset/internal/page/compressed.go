package page

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// checkCompressed checks that a page decompresses to at most size bytes. The library trusts the compressed bytes
// instead: a few of them can ask for any amount of memory, and for a damaged block of LZ4 it doubles its buffer without
// end.
func checkCompressed(codec format.CompressionCodec, page []byte, size int64) error {
	switch codec {
	case format.Snappy:
		if n, err := snappy.DecodedLen(page); err != nil || int64(n) > size {
			return errors.Join(err, tooLong(size))
		}
		return nil
	case format.Lz4Raw:
		_, err := lz4.UncompressBlock(page, make([]byte, size))
		return err
	case format.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(page))
		if err != nil {
			return err
		}
		return endsWithin(r, size)
	case format.Brotli:
		return endsWithin(brotli.NewReader(bytes.NewReader(page)), size)
	case format.Zstd:
		r, err := zstd.NewReader(bytes.NewReader(page), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(maxPage))
		if err != nil {
			return err
		}
		defer r.Close()
		return endsWithin(r, size)
	}
	return nil // not compressed, or the library reports an unknown codec
}

func endsWithin(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n > size {
		err = tooLong(size)
	}
	return err
}

func tooLong(size int64) error {
	return fmt.Errorf("a page decompresses to more than its %d bytes", size)
}
