package lines

import (
	"bytes"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/internal/lazyregexp"
)

var (
	titled = lazyregexp.New(`(?i)=+ *((?:[a-z/-]+ )*benchmark result|steady-state metrics) *=+`)
	mark   = lazyregexp.New(`^(?:>+|//+|[*|│]|[-#] |##\[[a-z]{1,20}\]|[0-9]+: |\([^()]{0,60}pid=[0-9][^()]{0,40}\)` +
		`|\[[^\]\[]{1,80}\](?:<std[a-z]+>)?:?|[A-Za-z0-9_.-]{1,60} +\| ` +
		`|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:?[0-9]{2})?` +
		`|(?:DEBUG|INFO|WARNING|ERROR) [0-9]{2}-[0-9]{2} [0-9:]{8} (?:\[[^\]]{1,80}\]|\S{1,60}\])` +
		`|(?:DEBUG|INFO|WARNING|ERROR):?(?: -)? |(?:DEBUG|INFO|WARNING|ERROR):[A-Za-z0-9_.]+:` +
		`|(?:stdout|stderr) [FP] )\s*`)
	// Python's asctime - name - level, loguru's place, a job and a step of GitHub. This expression is tried only on
	// lines that may have such a mark: one expression for everything would be slow on every line.
	named = lazyregexp.New(`^(?:[A-Za-z0-9_.]+ - (?:DEBUG|INFO|WARNING|ERROR) - ` +
		`|[A-Za-z0-9_.<>]+:[A-Za-z0-9_<>]+:[0-9]+ - |[^\t]+\t[^\t]+\t[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z )\s*`)
	row      = lazyregexp.New(`^\|([^|]*)\|(?:([^|]*)\|)?\s*$`)
	progress = [][]byte{
		[]byte("Avg prompt throughput: "), []byte("Avg generation throughput: "),
		[]byte("gen throughput (token/s): "), []byte("input throughput (token/s): "),
	}
)

// EngineProgress reports whether an engine logged the line while it worked. The rates in such a line cover a few
// seconds, and are no result of a benchmark.
func EngineProgress(line []byte) bool {
	return slices.ContainsFunc(progress, func(mark []byte) bool { return bytes.Contains(line, mark) })
}

// Ruled returns the title in a line of equals signs or hyphens, "=" for a line of equals signs alone. A header may
// share its line with a progress bar.
func Ruled(text string) (title string, ok bool) {
	if m := titled().FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	if len(text) < 6 || text[0] != '=' && text[0] != '-' {
		return "", false
	}
	inner := strings.TrimSpace(strings.Trim(text, "=-"))
	switch {
	case !strings.HasSuffix(text, "---") && !strings.HasSuffix(text, "==="):
		return "", false
	case inner == "" && text[0] == '=':
		return "=", true
	}
	return inner, true
}

// WithoutMarks removes the marks of runtimes, schedulers and quotes at the beginning of a line: (task, pid=1),
// [rank0]:, > and time stamps. A row of a table in Markdown that has a label and a value becomes "label: value".
func WithoutMarks(text string) string {
	const most = 8
	for range most {
		text = strings.TrimLeft(text, " \t")
		if strings.HasPrefix(text, "|") {
			if m := row().FindStringSubmatch(text); m != nil {
				text = cells(m[1], m[2])
				continue
			}
		}
		at := mark().FindStringIndex(text)
		if at == nil && (strings.Contains(text, " - ") || strings.Contains(text, "\t")) {
			at = named().FindStringIndex(text)
		}
		if at == nil || at[1] == len(text) && strings.HasPrefix(text, "[") {
			break
		}
		text = text[at[1]:]
	}
	return text
}

// cells returns a table row of one or two cells as a line of text.
func cells(label, value string) string {
	const emphasis = " \t*`"
	label, value = strings.Trim(label, emphasis), strings.Trim(value, emphasis)
	if value == "" {
		return label
	}
	return strings.TrimRight(label, ":") + ": " + value
}
