package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/benchgraph/benchgraph/hclspec/dataset/internal/page"
)

// maxCells bounds the values of a Parquet file that are held: encodings repeat a value at almost no cost.
const maxCells = 20_000_000

// maxText bounds the texts of a Parquet file that are held, in bytes.
const maxText = 1 << 30

// readParquet reads the columns with one value per row, and those with lists of values.
func readParquet(file string, data []byte) (rows []Row, err error) {
	defer func() { // the library panics on some files that are damaged
		if r := recover(); r != nil {
			rows, err = nil, fmt.Errorf("it is a damaged Parquet file: %v", r)
		}
	}()
	if err := page.CheckFooter(data); err != nil {
		return nil, fmt.Errorf("it is a damaged Parquet file: %w", err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("it is a damaged Parquet file: %w", err)
	}
	if err := page.CheckAll(f, data, maxRows); err != nil {
		return nil, fmt.Errorf("it is a damaged Parquet file: %w", err)
	}
	if f.NumRows() > maxRows {
		return nil, fmt.Errorf("it has more than %d rows", maxRows)
	}
	columns := f.Schema().Columns()
	leaves := map[string]int{}
	for _, path := range columns {
		leaves[path[0]]++
	}
	t := parquetTable{file: file, columns: columns, leaves: leaves}
	for _, group := range f.RowGroups() {
		if err := t.group(group); err != nil {
			return nil, fmt.Errorf("it is a damaged Parquet file: %w", err)
		}
	}
	return t.rows, nil
}

type parquetTable struct {
	file        string
	columns     [][]string     // paths of the leaves
	leaves      map[string]int // number of leaves below each column
	rows        []Row
	cells, text int
}

func (t *parquetTable) group(group parquet.RowGroup) (err error) {
	reader := group.Rows()
	defer func() { err = errors.Join(err, reader.Close()) }()
	buffer := make([]parquet.Row, 64)
	for {
		n, err := reader.ReadRows(buffer)
		for _, row := range buffer[:n] {
			if wrong := t.add(row); wrong != nil {
				return wrong
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}

func (t *parquetTable) add(row parquet.Row) error {
	fields := map[string]any{}
	for _, v := range row {
		i := v.Column()
		if i < 0 || i >= len(t.columns) || t.leaves[t.columns[i][0]] != 1 {
			continue // part of a structure
		}
		name := clean(t.columns[i][0])
		value := t.value(v)
		if t.cells > maxCells || t.text > maxText {
			return errors.New("it holds more than can be read")
		}
		if len(t.columns[i]) == 1 && v.RepetitionLevel() == 0 {
			fields[name] = value
			continue
		}
		list, _ := fields[name].([]any)
		if value != nil {
			list = append(list, value)
		}
		fields[name] = list
	}
	t.rows = append(t.rows, Row{File: t.file, Number: len(t.rows) + 1, Fields: fields})
	return nil
}

func (t *parquetTable) value(v parquet.Value) any {
	t.cells++
	if v.IsNull() {
		return nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		return json.Number(strconv.FormatInt(int64(v.Int32()), 10))
	case parquet.Int64:
		return json.Number(strconv.FormatInt(v.Int64(), 10))
	case parquet.Float:
		return floating(float64(v.Float()), 32)
	case parquet.Double:
		return floating(v.Double(), 64)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		text := clean(string(v.ByteArray()))
		t.text += len(text)
		return text
	}
	return nil
}
