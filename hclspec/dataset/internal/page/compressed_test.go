package page

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// A page that decompresses to more than its stated size is refused before the rest is decompressed.
func TestCompressedPageIsBounded(t *testing.T) {
	const real, said = 64 << 20, 1 << 20
	for _, c := range []compress.Codec{
		&parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw,
	} {
		page, err := c.Encode(nil, make([]byte, real))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkCompressed(c.CompressionCodec(), page, real); err != nil {
			t.Errorf("%s: the page is refused: %v", c, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = checkCompressed(c.CompressionCodec(), page, said)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > real/2 {
			t.Errorf("%s: %v, with %d bytes", c, err, took)
		}
		for _, damaged := range [][]byte{nil, page[:len(page)/2], bytes.Repeat([]byte{0xff}, len(page))} {
			_ = checkCompressed(c.CompressionCodec(), damaged, real) // may pass: the library refuses it then
		}
	}
}
