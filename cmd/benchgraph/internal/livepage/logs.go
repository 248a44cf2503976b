package livepage

import (
	"errors"
	"io"
	iofs "io/fs"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
	"github.com/benchgraph/benchgraph/internal/fs"
	"github.com/benchgraph/benchgraph/internal/printable"
	"github.com/benchgraph/benchgraph/report/document"
	"github.com/benchgraph/benchgraph/report/page"
)

// shownOfLog is the length of the end of a log that its page shows at first.
const shownOfLog = 128 << 10

// attempt returns the attempts at the node that a request names, and the chosen one. File names never contain text of
// the request.
func (s *Server) attempt(r *http.Request) (all []Attempt, chosen int, running bool) {
	query := r.URL.Query()
	node, name := query.Get("node"), query.Get("attempt")
	results, _ := s.keeper.now()
	if results.results != nil {
		all = slices.Clone(results.results.Attempts[node])
	}
	at, _ := s.tail.now()
	active := ""
	for _, n := range slices.Concat(at.state.Ended, at.state.Running) {
		if n.Address != node || n.Log == "" {
			continue
		}
		id, how := document.AttemptOf(n.Log), n.Since.Local().Format(time.DateTime)+": "+ending(n)
		if n.End.IsZero() && at.held {
			active = id
		}
		if i := slices.IndexFunc(all, func(a Attempt) bool { return a.Name == id }); i >= 0 {
			all[i].How = how
		} else {
			all = append(all, Attempt{id, how})
		}
	}
	chosen = len(all) - 1
	if name != "" {
		chosen = slices.IndexFunc(all, func(a Attempt) bool { return a.Name == name })
	}
	return all, chosen, chosen >= 0 && all[chosen].Name == active
}

// ending returns how a node ended, or that it is running.
func ending(n runlog.Node) string {
	switch {
	case n.End.IsZero():
		return "running"
	case n.Failed:
		return "failed: " + n.Message
	}
	return "succeeded in " + printable.Duration(n.End.Sub(n.Since))
}

// logFile is the part of a log that is written so far.
type logFile struct {
	*io.SectionReader
	io.Closer
}

// open opens the log that a request names, or answers with an error. The log of an attempt that has just begun is
// empty.
func (s *Server) open(w http.ResponseWriter, r *http.Request) (f *logFile, v *page.LogView) {
	all, chosen, running := s.attempt(r)
	results, _ := s.keeper.now()
	switch {
	case chosen < 0 && results.results == nil:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "The results are being read. Try again in a moment.")
		return nil, nil
	case chosen < 0:
		refuse(w, http.StatusNotFound, "There is no such attempt: benchgraph logs -list ADDR lists them.")
		return nil, nil
	}
	file, info, err := fs.OpenOwn(s.config.Log(all[chosen].Name))
	switch {
	case err == nil:
		f = &logFile{io.NewSectionReader(file, 0, info.Size()), file}
	case running && errors.Is(err, iofs.ErrNotExist):
		f = &logFile{io.NewSectionReader(strings.NewReader(""), 0, 0), io.NopCloser(nil)}
	default:
		refuse(w, http.StatusNotFound, "The log is not here: it was made on another machine, or was removed.")
		return nil, nil
	}
	v = &page.LogView{Address: r.URL.Query().Get("node"), Running: running}
	v.Attempt, v.How = all[chosen].Name, all[chosen].How
	for _, a := range all {
		v.Attempts = append(v.Attempts, page.LogAttempt{Name: a.Name, How: a.How})
	}
	return f, v
}

// logText serves a log as text. Readers request the part that they lack with a range.
func (s *Server) logText(w http.ResponseWriter, r *http.Request) {
	f, v := s.open(w, r)
	if f == nil {
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	w.Header().Set("Benchgraph-Attempt", map[bool]string{true: "running", false: "ended"}[v.Running])
	// The length has been sent: leave out output that is appended meanwhile.
	http.ServeContent(w, r, "", time.Time{}, f.SectionReader)
}

// log serves a page with the end of a log; the page follows the log.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	f, v := s.open(w, r)
	if f == nil {
		return
	}
	defer f.Close()
	from := max(0, f.Size()-shownOfLog)
	text := make([]byte, f.Size()-from)
	n, err := f.ReadAt(text, from)
	if err != nil && err != io.EOF {
		refuse(w, http.StatusInternalServerError, "The log cannot be read.")
		return
	}
	text = whole(text[:n])
	v.At, v.Cut = from+int64(len(text)), from > 0
	if v.Cut { // begin with a whole line
		_, rest, ok := strings.Cut(string(text), "\n")
		if ok {
			text = []byte(rest)
		}
	}
	v.Text = string(text)
	page, policy, err := v.HTML()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	packed(w, r, page)
}

// whole removes an incomplete character at the end of a text.
func whole(text []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// liveNode converts a node for the page.
func liveNode(n runlog.Node, now time.Time) page.LiveNode {
	end := n.End
	if end.IsZero() {
		end = now
	}
	l := page.LiveNode{Address: n.Address, Phase: n.Phase, Failed: n.Failed, Retrying: n.Retrying}
	l.Class, l.Message = n.Class, n.Message
	l.Took = printable.Duration(max(0, end.Sub(n.Since)))
	if n.Log != "" {
		l.Attempt = document.AttemptOf(n.Log)
	}
	return l
}

// liveGroups returns the samples of judged metrics, or those of a benchmark's first metric if no judged one is known
// yet.
func liveGroups(groups []runlog.Group, results *Results) []page.LiveGroup {
	type key struct{ benchmark, metric string }
	judged := map[key]bool{}
	if results != nil {
		for i := range results.Document.Comparisons {
			c := &results.Document.Comparisons[i]
			if c.Primary && c.Metric != "" {
				judged[key{c.Benchmark, c.Metric}] = true
			}
		}
	}
	var all []page.LiveGroup
	for _, g := range slices.Backward(groups) {
		one := page.LiveGroup{Benchmark: g.Benchmark, Commit: g.Commit}
		known := slices.ContainsFunc(g.Samples, func(t runlog.Sample) bool {
			return judged[key{t.Benchmark, t.Metric}]
		})
		order := map[int]int{}
		for _, t := range g.Samples {
			if known && !judged[key{t.Benchmark, t.Metric}] || !known && t.Metric != g.Samples[0].Metric {
				continue
			}
			order[t.Block]++
			one.Samples = append(one.Samples, document.Measurement{
				Benchmark: t.Benchmark, Commit: t.Commit, Candidate: t.Candidate, Block: t.Block, Order: order[t.Block],
				Metric: t.Metric, Value: t.Value, Unit: t.Unit,
			})
		}
		all = append(all, one)
	}
	return all
}
