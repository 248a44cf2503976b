package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/benchgraph/benchgraph/metrics"
	"github.com/benchgraph/benchgraph/metrics/collect"
	"github.com/benchgraph/benchgraph/metrics/gobench"
	"github.com/benchgraph/benchgraph/metrics/inference"
	"github.com/benchgraph/benchgraph/metrics/jsondoc"
	"github.com/benchgraph/benchgraph/metrics/lines"
	"github.com/benchgraph/benchgraph/metrics/origin"
	"github.com/benchgraph/benchgraph/metrics/redis"
)

// Detect returns the format of an output: gobench, redis, vllm, sglang, the format of a JSON file (aiperf, hyperfine,
// pytest, pyperf, googlebench) or json; empty: none of them. The first line that only one format prints decides, or the
// keys of a document. If there are neither, any JSON document makes the format json.
func Detect(r io.Reader) (string, error) {
	l := lines.New(r)
	document := false
	results, keys := inference.NewSearch(), origin.NewSearch()
	for l.Next() {
		line := l.Bytes()
		if len(line) == 0 {
			continue
		}
		switch {
		case gobench.Recognises(line):
			return "gobench", nil
		case redis.Recognises(line):
			return "redis", nil
		}
		if tool, err := results.Line(l); tool != "" {
			return tool, err
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

// detectAgain detects the format of r and returns a reader of the whole output: r itself if it can be rewound, else a
// copy in memory.
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

// bounded is a writer into memory that returns errBounded above a limit.
type bounded struct{ buf *bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > jsondoc.MaxTail {
		return 0, errBounded
	}
	return b.buf.Write(p)
}
