package pipe

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchgraph/benchgraph/internal/head"
	"github.com/benchgraph/benchgraph/internal/printable"
)

type process struct {
	pid  int
	in   io.WriteCloser
	over chan struct{} // closed when the process has ended
	told func(string)

	writing sync.Mutex
	out     *json.Encoder // writes to in

	mu    sync.Mutex
	last  uint64              // number of the last call
	calls map[uint64]*waiting // nil: no more messages will come
	gone  *goneError          // set before over is closed
}

// waiting is a caller that waits for the answer to a call.
type waiting struct {
	messages chan message  // messages of the call, in order
	left     chan struct{} // closed when the caller no longer waits
}

func start(o Options) (*process, error) {
	words := &head.Buffer{Most: 8 << 10}
	cmd := exec.Command(o.Program)
	cmd.Env, cmd.Dir = append([]string{}, o.Environ...), "/"
	cmd.Stderr, cmd.WaitDelay = words, time.Second
	// Ctrl-C in a terminal must not reach the program: benchgraph tells it which jobs to cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, in: in, out: json.NewEncoder(in), over: make(chan struct{}), told: o.Told,
		calls: map[uint64]*waiting{}}
	go func() {
		p.read(out)
		p.end(killWithin)
		gone := &goneError{program: o.Program, err: cmd.Wait()}
		lines := strings.Split(strings.TrimSpace(string(words.Bytes())), "\n")
		gone.words = printable.Line(lines[len(lines)-1])
		p.gone = gone
		close(p.over)
	}()
	return p, nil
}

// killWithin is how long a process may live on after its last message.
const killWithin = 2 * time.Second

// end closes the pipe, by which the process ends. A process that goes on for longer is killed.
func (p *process) end(within time.Duration) {
	_ = p.in.Close()
	go func() {
		select {
		case <-p.over:
		case <-time.After(within):
			_ = syscall.Kill(-p.pid, syscall.SIGKILL) // its group, which has its number
		}
	}()
}

func (p *process) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// longestMessage limits the bytes of a message. The output of a job comes in parts of mostText.
const longestMessage = 1 << 20

// read passes the messages of the process to the callers. A line that is no message ends the process.
func (p *process) read(out io.Reader) {
	defer func() { // callers see that no more messages come
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range p.calls {
			close(w.messages)
		}
		p.calls = nil
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestMessage)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			return
		}
		if m.Number == 0 {
			p.told(m.Told)
			continue
		}
		p.mu.Lock()
		w := p.calls[m.Number]
		p.mu.Unlock()
		if w == nil {
			continue
		}
		select {
		case w.messages <- m:
		case <-w.left:
		}
	}
}

// lastWord is how long a stopped call may take to answer: its answer may be the only one that names a job.
const lastWord = 20 * time.Second

// call sends a call, passes messages before the answer to each, and returns the answer.
func (p *process) call(ctx context.Context, m message, each func(message)) (message, error) {
	w := &waiting{make(chan message, 16), make(chan struct{})}
	p.mu.Lock()
	p.last++
	m.Number = p.last
	if p.calls == nil {
		close(w.messages)
	} else {
		p.calls[m.Number] = w
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.calls, m.Number)
		p.mu.Unlock()
		close(w.left)
	}()
	if each != nil {
		each(message{})
	}
	sent := make(chan struct{})
	go func() { // a process that does not read must not keep the caller
		defer close(sent)
		p.send(m)
	}()
	ended, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case a, more := <-w.messages:
			if !more {
				<-p.over
				return message{}, cmp.Or[error](context.Cause(ctx), p.gone)
			}
			if a.Done {
				return a, a.Error.unpack(context.Cause(ctx))
			}
			if each != nil {
				each(a)
			}
		case <-ended:
			if m.Call == callOpen { // the answer would name no job
				return message{}, context.Cause(ctx)
			}
			ended, late = nil, time.After(lastWord)
			go func() {
				<-sent
				p.send(message{Number: m.Number, Call: callStop})
			}()
		case <-late:
			return message{}, context.Cause(ctx)
		}
	}
}

// send writes one line. It ignores errors: read notices when the process has ended.
func (p *process) send(m message) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.out.Encode(m)
}
