package livepage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/runlog"
)

// alive is the interval of signs of life when nothing happens.
const alive = 15 * time.Second

// position returns the name of a position in a run log, as used in events.
func position(run string, offset int64) string { return run + ":" + strconv.FormatInt(offset, 10) }

// events sends the run log from a place on as server-sent events, one for each line, then appended lines, and then
// the log of the next apply. The ID of an event is the place after it. Events without an ID: "now" says that an apply
// began or ended, or that results were read; "page" names a new version of the page.
//
// The server keeps only the position of each client in the log. A slow client reads the same file later.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if s.clients.Add(1) > mostClients {
		s.clients.Add(-1)
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "Too many clients follow the events.")
		return
	}
	defer s.clients.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	c := &client{w: w, flush: http.NewResponseController(w).Flush}
	c.from = cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("from"))
	c.send("retry: 2000\n\n")
	for c.err == nil {
		at, moved := s.tail.now()
		results, renewed := s.keeper.now()
		c.catchUp(s.config.Runs, at)
		c.announce(at, results)
		s.keeper.look()
		c.rest()
		select {
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		case <-moved:
		case <-renewed:
		case <-time.After(alive):
			c.send(": alive\n\n")
		}
	}
}

// client is one reader of events.
type client struct {
	w     http.ResponseWriter
	flush func() error
	err   error

	from   string // requested place
	run    string // run that it reads; empty: not begun
	offset int64

	told    bool   // announce was called, so only changes are sent
	held    string // the apply at the last announcement
	read    string // time and error of the last results
	version string // version of the page
}

func (c *client) send(text string) {
	if c.err == nil {
		_, c.err = c.w.Write([]byte(text))
	}
}

// rest flushes the written data.
func (c *client) rest() {
	if c.err == nil {
		c.err = c.flush()
	}
}

// begin sets the position in a log: the requested place if it is in this log, otherwise 0.
func (c *client) begin(at standing) {
	c.run, c.offset = at.run, 0
	run, text, _ := strings.Cut(c.from, ":")
	if offset, err := strconv.ParseInt(text, 10, 64); err == nil && run == at.run && 0 <= offset &&
		offset <= at.offset {
		c.offset = offset
	}
	c.from = ""
}

// catchUp sends lines up to the position that tail has read. It first finishes a log that is no longer the newest.
func (c *client) catchUp(dir string, at standing) {
	if c.run != "" && c.run != at.run {
		c.copy(dir, math.MaxInt64)
	}
	if c.run != at.run {
		c.begin(at)
	}
	c.copy(dir, at.offset)
}

func (c *client) copy(dir string, end int64) {
	for c.err == nil && c.run != "" && c.offset < end {
		text := readLines(runlog.Path(dir, c.run), c.offset)
		if len(text) == 0 {
			return
		}
		begun := c.offset
		read := runlog.Lines(text, func(line []byte) {
			c.offset += int64(len(line)) + 1
			c.line(line)
		})
		if read == 0 {
			c.offset = begun + int64(len(text)) // a part of a line that is too long for an event
		}
	}
}

// line sends a line as an event. It skips invalid JSON, which could contain a line end for browsers.
func (c *client) line(text []byte) {
	var compact bytes.Buffer
	if len(text) > runlog.Longest || json.Compact(&compact, text) != nil {
		return
	}
	c.send(fmt.Sprintf("id: %s\ndata: %s\n\n", position(c.run, c.offset), compact.Bytes()))
}

// announce sends news that are in no log.
func (c *client) announce(at standing, results shown) {
	held, read := "", fmt.Sprint(results.at, results.problem)
	if at.held {
		held = fmt.Sprint(at.owner.PID, " ", at.owner.Born)
	}
	if c.told && held != c.held {
		c.send("event: now\ndata: apply\n\n")
	}
	if c.told && read != c.read {
		c.send("event: now\ndata: results\n\n")
	}
	if version := results.page.Version; version != c.version {
		c.send("event: page\ndata: " + version + "\n\n")
		c.version = version
	}
	c.told, c.held, c.read = true, held, read
}
