package wheel

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/fs"
)

// row is one line of a wheel's RECORD: a file, its hash and its size. The row of RECORD itself has neither.
type row struct{ name, hash, size string }

// readRecord finds and parses the wheel's RECORD.
func (a *archive) readRecord() error {
	for _, name := range a.names {
		dir, file, _ := strings.Cut(name, "/")
		if !strings.HasSuffix(dir, ".dist-info") {
			continue
		}
		switch file {
		case "RECORD":
			if a.record != "" {
				return fmt.Errorf("two RECORDs: %s and %s", a.record, name)
			}
			a.record = name
		case "RECORD.jws", "RECORD.p7s":
			a.signed = name
		}
	}
	if a.record == "" && a.signed != "" {
		return fmt.Errorf("entry %q: a signed wheel without a RECORD", a.signed)
	}
	if a.record == "" {
		return errors.New("no RECORD in a .dist-info directory: not a wheel")
	}
	f := a.files[a.record]
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("entry %q: %w", a.record, err)
	}
	defer r.Close()
	text, err := fs.ReadAll(r, maxRecord)
	if err != nil {
		return fmt.Errorf("entry %q: %w", a.record, err)
	}
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord = 3
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("entry %q: %w", a.record, err)
		}
		a.listing = append(a.listing, row{fields[0], fields[1], fields[2]})
	}
}

// formatRecord returns a sorted RECORD with its own row at the end.
func formatRecord(rows []row, own string) ([]byte, error) {
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(x.name, y.name) })
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, r := range append(rows, row{name: own}) {
		if err := w.Write([]string{r.name, r.hash, r.size}); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
