package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/number"
	"github.com/benchgraph/benchgraph/metrics/origin"
)

// Detect returns the format of an output: gobench, redis, vllm, sglang, the format of a JSON file (aiperf, hyperfine,
// pytest, pyperf, googlebench) or json; empty: none of them. The first line that only one format prints decides, or the
// keys of a document; any other JSON document decides when there is no such line.
func Detect(r io.Reader) (string, error) {
	l := lines.New(r)
	document := false
	results, keys := newInferenceReading("vllm"), origin.NewSearch()
	for l.Next() {
		line := l.Bytes()
		if len(line) == 0 {
			continue
		}
		switch {
		case isBenchLine(line) && isBenchResult(line):
			return "gobench", nil
		case isRedis(line):
			return "redis", nil
		case results.line(line, l.Number):
			if results.inTable && results.tool == "vllm" {
				return serving(l), l.Err()
			}
			return results.tool, nil
		}
		if format := keys.Line(line); format != "" {
			return format, nil
		}
		text := bytes.TrimLeft(line, " ")
		document = document || len(text) > 0 && (text[0] == '{' || text[0] == '[' &&
			len(bytes.TrimRight(text, " ")) < 3)
	}
	if document {
		return "json", l.Err()
	}
	return "", l.Err()
}

func isBenchResult(line []byte) bool {
	fields := strings.Fields(string(line[:min(len(line), 4096)]))
	if len(fields) < 4 || strings.Trim(fields[1], "0123456789") != "" {
		return false
	}
	_, err := number.Parse(fields[2])
	return err == nil
}

func isRedis(line []byte) bool {
	text := bytes.TrimSpace(line)
	return bytes.Contains(text, []byte(" requests per second")) &&
		(redisRate().Match(text) || redisQuiet().Match(text)) || bytes.HasPrefix(text, []byte(`"test","rps"`)) ||
		bytes.HasPrefix(text, []byte("Type ")) && bytes.Contains(text, []byte("Ops/sec"))
}

// serving tells the two clients apart that print the same header: SGLang's table begins with its backend.
func serving(l *lines.Reader) string {
	for n := 0; n < 4 && l.Next(); {
		line := bytes.TrimSpace([]byte(lines.WithoutMarks(l.Text())))
		if bytes.HasPrefix(line, []byte("Backend:")) {
			return "sglang"
		}
		if len(line) > 0 {
			n++
		}
	}
	return "vllm"
}

// auto reads an output with the parser of the format that Detect finds.
type auto struct{}

func (auto) Parse(out metrics.Output) (metrics.Result, error) {
	format, again, err := detectAgain(out.Stdout)
	if err != nil {
		return metrics.Result{}, fmt.Errorf("auto: %w", err)
	}
	out.Stdout = again
	if format == "" {
		c := collect.New("")
		l := lines.New(again)
		for l.Next() {
			c.Scan(l.Bytes())
		}
		c.Warn(0, "no known output format recognised")
		return c.Finish(), l.Err()
	}
	p, err := Lookup(format)
	if err != nil {
		return metrics.Result{}, err
	}
	return p.Parse(out)
}

// detectAgain detects the format of r and returns a reader of the whole output: r itself where it can be rewound,
// else a copy in memory.
func detectAgain(r io.Reader) (format string, again io.Reader, err error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			if format, err = Detect(s); err == nil {
				_, err = s.Seek(start, io.SeekStart)
			}
			return format, s, err
		}
	}
	var read bytes.Buffer
	format, err = Detect(io.TeeReader(r, &bounded{&read}))
	if errors.Is(err, errBounded) {
		err = fmt.Errorf("no format recognised in the first %d MiB: declare it", jsondoc.MaxTail>>20)
	}
	return format, io.MultiReader(&read, r), err
}

var errBounded = errors.New("too much to keep")

// bounded refuses what would not fit into memory.
type bounded struct{ buf *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > jsondoc.MaxTail {
		return 0, errBounded
	}
	return b.buf.Write(p)
}
