package watch

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/cmd/benchgraph/internal/view"
	"github.com/benchgraph/benchgraph/engine"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// clearBelow clears from the line of the cursor down. The cursor stays visible: a shell must have it when this process
// is stopped or killed.
const clearBelow = "\r\x1b[J"

const (
	frame     = 150 * time.Millisecond
	narrowest = 11 // columns of a window that the table fits into
)

// Live is a table of the running nodes at the bottom of a terminal; events scroll by above it.
type Live struct {
	w     io.Writer
	style view.Style
	size  func() (columns, rows int)
	quit  chan struct{}
	goes  chan os.Signal // SIGCONT: the process was stopped, and goes on
	done  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	drawn  []int     // columns of each line of the table on the screen
	last   time.Time // when the table was drawn
	progress
}

// runningNode is one row of the table.
type runningNode struct {
	address string
	phase   string
	devices int
	queued  bool // its job does not run yet
	since   time.Time
	log     string
}

// NewLive returns a Live for a plan. size returns the present size of the terminal.
func NewLive(w io.Writer, s view.Style, p *engine.Plan, size func() (columns, rows int)) *Live {
	l := &Live{w: w, style: s, size: size, quit: make(chan struct{}), goes: make(chan os.Signal, 1), last: time.Now(),
		progress: newProgress(p)}
	signal.Notify(l.goes, syscall.SIGCONT)
	l.done.Go(l.animate)
	return l
}

func (l *Live) animate() {
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.draw("")
			l.mu.Unlock()
		}
	}
}

// Close removes the table.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.quit)
	signal.Stop(l.goes)
	columns, _ := l.size()
	fmt.Fprint(l.w, l.back(columns))
	l.drawn = nil
}

// Event updates the table, and writes a line above it for events that have one.
func (l *Live) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(e)
	text := ""
	switch e.Type {
	case engine.NodeStart, engine.NodeCached:
	default:
		text = eventText(l.style, e, false)
	}
	switch {
	case l.closed:
		fmt.Fprint(l.w, text)
	case text != "":
		l.draw(text)
	}
}

// back returns the sequence that moves to the beginning of the table and clears it. In a window that became narrower, a
// line takes several rows.
func (l *Live) back(columns int) string {
	if len(l.drawn) == 0 {
		return ""
	}
	rows, width := 0, max(columns, narrowest)
	for _, cells := range l.drawn {
		rows += max(1, (cells+width-1)/width)
	}
	return fmt.Sprintf("\x1b[%dA", rows) + clearBelow
}

// draw writes text above the table and draws the table anew, in one write, so that nothing flickers.
func (l *Live) draw(text string) {
	if l.closed {
		return
	}
	if l.wasStopped() { // a shell has written below the table
		l.drawn = nil
	}
	columns, rows := l.size()
	lines := l.table(max(columns, narrowest)-1, max(rows-2, 1))
	var b strings.Builder
	b.WriteString(l.back(columns) + text)
	l.drawn = l.drawn[:0]
	for _, line := range lines {
		b.WriteString(line + "\n")
		l.drawn = append(l.drawn, view.Cells(view.Clean(line))) // without its colours
	}
	io.WriteString(l.w, b.String())
	l.last = time.Now()
}

// wasStopped reports whether the process was stopped, as by Ctrl-Z, since the table was drawn. SIGCONT may come a
// moment after the other threads go on, so a late table waits for this moment.
func (l *Live) wasStopped() bool {
	if time.Since(l.last) > 4*frame {
		time.Sleep(frame / 3)
	}
	select {
	case <-l.goes:
		return true
	default:
		return false
	}
}

// table returns the table, with at most so many lines of at most so many columns.
func (l *Live) table(columns, rows int) []string {
	nodes := slices.Collect(maps.Values(l.running))
	slices.SortFunc(nodes, func(a, b *runningNode) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return strings.Compare(a.address, b.address)
	})
	below := []string{l.bar(columns)}
	if l.waits != "" && rows > 2 {
		below = []string{view.Fit("waiting: "+view.Clean(l.waits), columns), below[0]}
	}
	rows -= len(below)
	shown := nodes[:min(len(nodes), rows)]
	if len(shown) < len(nodes) && len(shown) > 0 {
		shown = shown[:len(shown)-1]
	}
	names, width := make([]string, len(shown)), 0
	for i, n := range shown {
		names[i] = view.Clean(l.nameOf(n))
		width = max(width, min(view.Cells(names[i]), columns/2))
	}
	var lines []string
	for i, n := range shown {
		lines = append(lines, l.row(n, names[i], width, columns))
	}
	if rest := len(nodes) - len(shown); rest > 0 && rows > 0 {
		lines = append(lines, view.Fit(fmt.Sprintf("  and %d more", rest), columns))
	}
	return append(lines, below...)
}

// nameOf returns the address of a node, or the commit that a trial measures.
func (l *Live) nameOf(n *runningNode) string {
	g := l.group(n.address)
	if g == nil {
		return n.address
	}
	benchmarks := map[string]bool{}
	for _, other := range l.groups {
		benchmarks[other.benchmark] = true
	}
	return g.name(len(benchmarks) > 1)
}

func (l *Live) row(n *runningNode, name string, width, columns int) string {
	elapsed := time.Since(n.since)
	spinner := []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}[int(elapsed/frame)%10]
	devices, soFar := "", ""
	if n.queued {
		devices = "queued"
	} else if n.devices > 0 {
		devices = fmt.Sprintf("%d GPU", n.devices)
	}
	if g := l.group(n.address); g != nil {
		soFar = g.soFar()
	}
	text := spinner + " " + view.Pad(view.Fit(name, width), width)
	for _, cell := range []string{n.phase, printable.Duration(elapsed.Truncate(time.Second / 10)), soFar, devices,
		lastLine(n.log)} {
		if cell = view.Clean(cell); cell != "" {
			text += "  " + cell
		}
	}
	return view.Fit(text, columns)
}

// bar shows how many nodes have ended and how, the verdicts, and the time left. # stands for nodes that ran, = for
// nodes that were up to date, x for failed ones.
func (l *Live) bar(columns int) string {
	text := fmt.Sprintf("%s/%s", view.Number(len(l.ended)), view.Number(l.total))
	if l.failed > 0 {
		text += fmt.Sprintf("  %s failed", view.Number(l.failed))
	}
	running, queued := l.busy()
	text += fmt.Sprintf("  %d running", running)
	if queued > 0 {
		text += fmt.Sprintf("  %d queued", queued)
	}
	text += fmt.Sprintf("  %s", printable.Duration(time.Since(l.begun).Truncate(time.Second)))
	if left := l.left(); left != "" {
		text += "  " + left
	}
	if verdicts := l.verdicts(); verdicts != "" {
		text += "  " + verdicts
	}
	const width = 24
	if view.Cells(text)+width+3 > columns {
		return view.Fit(text, columns)
	}
	part := func(n int) int { return width * n / max(1, l.total) }
	full, cached, failed := part(len(l.ended)), part(l.cached), part(l.failed)
	if l.failed > 0 {
		failed = max(failed, 1)
	}
	done := max(0, full-cached-failed)
	bar := ""
	for _, c := range []struct {
		n           int
		sign, color string
	}{{cached, "=", view.Dim}, {done, "#", view.Green}, {failed, "x", view.Red},
		{width - cached - done - failed, "-", ""}} {
		bar += l.style.Paint(c.color, strings.Repeat(c.sign, max(0, c.n)))
	}
	return "[" + bar + "] " + text
}

// lastLine returns the last line of a log that is being written.
func lastLine(path string) string {
	const window = 1024
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	buf := make([]byte, min(window, end))
	n, _ := f.ReadAt(buf, end-int64(len(buf)))
	// A carriage return begins a line anew, as progress bars do.
	lines := strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if line = view.Clean(line); line != "" {
			return line
		}
	}
	return ""
}
