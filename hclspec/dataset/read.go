// Package dataset reads tables of commits and of recorded results, as studies publish them, and writes the commits as
// blocks of the language.
//
// A table is foreign text: the content of a cell stays text, a row that cannot be used is reported with its number, and
// the other rows are read all the same.
package dataset

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxFile is the size in bytes up to which a file is read: its table is held in memory.
const MaxFile = 256 << 20

// maxRows bounds the rows of one file.
const maxRows = 1_000_000

// Row is one row of a table.
type Row struct {
	File   string         // name of the file, as the caller gave it
	List   string         // name of the row's list in a JSON object; empty: none
	Number int            // within the list, from 1; the heading of a CSV file is no row
	Line   int            // line of the row, from 1; 0: not a file of lines
	Fields map[string]any // string, json.Number, bool, nil, []any or map[string]any, by the name of the column
}

// Place names the row for people.
func (r Row) Place() string {
	place := fmt.Sprintf("row %d", r.Number)
	if r.Line > 0 {
		place = fmt.Sprintf("line %d", r.Line)
	}
	if r.List != "" {
		place = r.List + ", " + place
	}
	if r.File != "" {
		place = r.File + ": " + place
	}
	return place
}

// Problem is a message for the user about one row.
type Problem struct {
	Row  Row
	Text string
	Lost bool // nothing was made of the row
}

func (p Problem) String() string { return p.Row.Place() + ": " + p.Text }

// Read returns the rows of a file. Its content decides between JSON, JSON lines, CSV and Parquet. The problems are rows
// that could not be read; the error says that the file holds no table at all.
func Read(file string, data []byte) ([]Row, []Problem, error) {
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("it has %d bytes, and %d can be read", len(data), MaxFile)
	}
	if bytes.HasPrefix(data, []byte("PAR1")) {
		rows, err := readParquet(file, data)
		return rows, nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text := bytes.TrimSpace(data)
	switch {
	case len(text) == 0:
		return nil, nil, errors.New("it is empty")
	case text[0] == '[' || text[0] == '{':
		return readJSON(file, data)
	}
	return readCSV(file, data)
}

// readCSV reads a table whose first record names the columns. The separator is the comma, the semicolon or the tab,
// whichever the heading has most of.
func readCSV(file string, data []byte) ([]Row, []Problem, error) {
	heading, _, _ := bytes.Cut(data, []byte("\n"))
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	for _, comma := range []rune{';', '\t'} {
		if bytes.Count(heading, []byte(string(comma))) > bytes.Count(heading, []byte(string(r.Comma))) {
			r.Comma = comma
		}
	}
	first, err := r.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("its heading cannot be read: %w", err)
	}
	names := make([]string, len(first))
	for i, name := range first {
		name = clean(strings.TrimSpace(name))
		if same := slices.Index(names, name); same >= 0 && name != "" {
			return nil, nil, fmt.Errorf("its heading has the column %q twice, as columns %d and %d: rename one, or "+
				"remove it", name, same+1, i+1)
		}
		names[i] = name
	}
	if len(names) == 1 && !plausible(names[0]) {
		return nil, nil, errors.New("it is neither JSON nor CSV nor Parquet")
	}
	var rows []Row
	var problems []Problem
	for number := 1; ; number++ {
		record, err := r.Read()
		row := Row{File: file, Number: number}
		var mistake *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return rows, problems, nil
		case errors.As(err, &mistake):
			row.Line = mistake.Line
			problems = append(problems, Problem{row, mistake.Err.Error(), true})
			continue
		case err != nil:
			return rows, problems, err
		}
		row.Line, _ = r.FieldPos(0)
		switch {
		case len(record) != len(names):
			problems = append(problems, Problem{row, fmt.Sprintf("it has %d fields, the heading %d", len(record),
				len(names)), true})
			continue
		case number > maxRows:
			return nil, nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
		row.Fields = map[string]any{}
		for i, value := range record {
			row.Fields[names[i]] = clean(value)
		}
		rows = append(rows, row)
	}
}

// plausible reports whether a text can be the name of a column.
func plausible(name string) bool {
	return name != "" && len(name) < 100 && !strings.ContainsAny(name, "\x00{}<>=()")
}

// readJSON reads an array of objects, an object with such arrays, a single object, or one of these on each line.
func readJSON(file string, data []byte) ([]Row, []Problem, error) {
	whole, err := decode(data)
	if err == nil {
		return rowsOf(file, whole)
	}
	var rows []Row
	var problems []Problem
	number := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		number++
		row := Row{File: file, Number: number, Line: i + 1}
		value, lineErr := decode(line)
		fields, ok := value.(map[string]any)
		switch {
		case lineErr != nil:
			problems = append(problems, Problem{row, "it is no JSON: " + lineErr.Error(), true})
		case !ok:
			problems = append(problems, Problem{row, "it is no object", true})
		default:
			row.Fields = fields
			rows = append(rows, row)
		}
		if number > maxRows {
			return nil, nil, fmt.Errorf("it has more than %d rows", maxRows)
		}
	}
	if len(rows) == 0 {
		return nil, nil, fmt.Errorf("it is no JSON: %w", err)
	}
	return rows, problems, nil
}

// decode reads a text that is exactly one JSON value.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func rowsOf(file string, whole any) ([]Row, []Problem, error) {
	switch v := whole.(type) {
	case []any:
		rows, problems := listed(file, "", v)
		return rows, problems, nil
	case map[string]any:
		if hasHash(v) {
			return []Row{{File: file, Number: 1, Fields: v}}, nil, nil
		}
		var rows []Row
		var problems []Problem
		lists := 0
		for _, name := range sortedKeys(v) {
			list, ok := v[name].([]any)
			if !ok || !holdsObjects(list) {
				continue
			}
			found, wrong := listed(file, clean(name), list)
			rows, problems = append(rows, found...), append(problems, wrong...)
			lists++
		}
		if lists == 0 {
			return []Row{{File: file, Number: 1, Fields: v}}, nil, nil
		}
		return rows, problems, nil
	}
	return nil, nil, errors.New("it holds neither a list nor an object")
}

func holdsObjects(list []any) bool {
	for _, v := range list {
		if _, ok := v.(map[string]any); ok {
			return true
		}
	}
	return false
}

func listed(file, name string, list []any) ([]Row, []Problem) {
	var rows []Row
	var problems []Problem
	for i, v := range list {
		row := Row{File: file, List: name, Number: i + 1}
		fields, ok := v.(map[string]any)
		if !ok {
			problems = append(problems, Problem{row, "it is no object", true})
			continue
		}
		row.Fields = fields
		rows = append(rows, row)
	}
	return rows, problems
}

// clean replaces bytes that are not UTF-8.
func clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
