package view

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchgraph/benchgraph/engine"
)

// The control sequences that the live view uses.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearBelow = "\r\x1b[J"
)

const frame = 150 * time.Millisecond

// Live is a table at the bottom of a terminal that shows what runs; what happened scrolls by above it.
type Live struct {
	w     io.Writer
	style Style
	size  func() (columns, rows int)
	quit  chan struct{}
	done  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[string]*runningNode
	ended   map[string]bool          // by address
	planned map[string]time.Duration // estimates of what is to be run and has not ended
	total   int
	drawn   int // lines of the table that are on the screen
	begun   time.Time
}

// runningNode is one row of the table.
type runningNode struct {
	address string
	phase   string
	devices int
	since   time.Time
	log     string
}

// NewLive returns a Live for a plan, on a terminal of the size that size tells each time it is asked.
func NewLive(w io.Writer, s Style, p *engine.Plan, size func() (columns, rows int)) *Live {
	l := &Live{w: w, style: s, size: size, quit: make(chan struct{}), running: map[string]*runningNode{},
		ended: map[string]bool{}, planned: map[string]time.Duration{}, total: len(p.Steps), begun: time.Now()}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == engine.Run {
			l.planned[s.Node.Address] = s.Estimate
		}
	}
	fmt.Fprint(w, hideCursor)
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

// Close takes the table away and gives the cursor back.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.quit)
	fmt.Fprint(l.w, l.back()+showCursor)
	l.drawn = 0
}

// Event takes an event into the table, and writes above it what is worth a line.
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

func (l *Live) note(e engine.Event) {
	switch e.Type {
	case engine.NodeStart:
		l.running[e.Address] = &runningNode{address: e.Address, since: e.Time, log: e.Log}
	case engine.NodeProgress:
		if n := l.running[e.Address]; n != nil {
			n.phase = e.Phase
		}
	case engine.LeaseGranted:
		if devices, ok := e.Data["devices"].([]string); ok && l.running[e.Address] != nil {
			l.running[e.Address].devices = len(devices)
		}
	case engine.NodeDone, engine.NodeFailed, engine.NodeCached, engine.NodeSkipped:
		delete(l.running, e.Address)
		if !e.Retrying {
			l.ended[e.Address] = true
			delete(l.planned, e.Address)
		}
	}
	l.total = max(l.total, len(l.ended)+len(l.running))
}

// back goes to where the table begins and clears it.
func (l *Live) back() string {
	if l.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", l.drawn) + clearBelow
}

// draw writes text above the table and draws the table anew, in one write, so that nothing flickers.
func (l *Live) draw(text string) {
	if l.closed {
		return
	}
	columns, rows := l.size()
	lines := l.table(max(columns-1, 10), max(rows-2, 1))
	var b strings.Builder
	b.WriteString(l.back() + text)
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	l.drawn = len(lines)
	io.WriteString(l.w, b.String())
}

// table is at most so many lines, each of so many columns at most.
func (l *Live) table(columns, rows int) []string {
	nodes := make([]*runningNode, 0, len(l.running))
	for _, n := range l.running {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *runningNode) int {
		if c := a.since.Compare(b.since); c != 0 {
			return c
		}
		return strings.Compare(a.address, b.address)
	})
	shown := nodes[:min(len(nodes), rows-1)]
	if len(shown) < len(nodes) && len(shown) > 0 {
		shown = shown[:len(shown)-1]
	}
	width := 0
	for _, n := range shown {
		width = max(width, min(cells(Clean(n.address)), columns/2))
	}
	var lines []string
	for _, n := range shown {
		lines = append(lines, l.row(n, width, columns))
	}
	if rest := len(nodes) - len(shown); rest > 0 && rows > 1 {
		lines = append(lines, fit(fmt.Sprintf("  and %d more", rest), columns))
	}
	return append(lines, l.bar(columns))
}

func (l *Live) row(n *runningNode, width, columns int) string {
	elapsed := time.Since(n.since)
	spinner := []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}[int(elapsed/frame)%10]
	devices := ""
	if n.devices > 0 {
		devices = fmt.Sprintf("%d GPU", n.devices)
	}
	text := spinner + " " + pad(fit(Clean(n.address), width), width)
	for _, cell := range []string{n.phase, Duration(elapsed.Truncate(time.Second / 10)), devices, lastLine(n.log)} {
		if cell = Clean(cell); cell != "" {
			text += "  " + cell
		}
	}
	return fit(text, columns)
}

// bar shows how much of all nodes has ended, and when the rest will have.
func (l *Live) bar(columns int) string {
	const width = 24
	full := 0
	if l.total > 0 {
		full = width * len(l.ended) / l.total
	}
	text := fmt.Sprintf("%s/%s", Number(len(l.ended)), Number(l.total))
	if columns > width+2*len(text) {
		text = "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "] " + text
	}
	text += fmt.Sprintf("  %d running  %s", len(l.running), Duration(time.Since(l.begun).Truncate(time.Second)))
	if eta, ok := l.eta(); ok {
		text += "  about " + Duration(roughly(eta)) + " left"
	}
	return fit(text, columns)
}

// eta is what the rest will take when as many nodes as now run at once; false when a duration is not known.
func (l *Live) eta() (time.Duration, bool) {
	var sum, longest time.Duration
	for address, estimate := range l.planned {
		if estimate == 0 {
			return 0, false
		}
		if n := l.running[address]; n != nil {
			estimate = max(0, estimate-time.Since(n.since))
		}
		sum += estimate
		longest = max(longest, estimate)
	}
	return max(longest, sum/time.Duration(max(1, len(l.running)))), len(l.planned) > 0
}

// lastLine is the last line of a log that is being written.
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
		if line = Clean(line); line != "" {
			return line
		}
	}
	return ""
}
