package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/benchgraph/benchgraph/executor/job"
)

// Opener opens the scheduler with the caller's settings. told is called with messages for the user.
type Opener func(ctx context.Context, settings json.RawMessage, told func(string)) (Scheduler, error)

var errStopped = errors.New("the call was stopped")

// server answers the calls of one caller.
type server struct {
	open Opener

	writing sync.Mutex
	out     *json.Encoder

	mu        sync.Mutex
	scheduler Scheduler // nil: not opened
	calls     map[uint64]context.CancelCauseFunc
}

// Serve reads calls and answers them until the input or ctx ends. It then stops the running calls.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open Opener) error {
	s := &server{open: open, out: json.NewEncoder(out), calls: map[uint64]context.CancelCauseFunc{}}
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(errStopped)
	for lines := json.NewDecoder(in); ; {
		var m message
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("calls: %w", err)
		}
		s.mu.Lock()
		if m.Call == callStop {
			if end := s.calls[m.Number]; end != nil {
				end(errStopped)
			}
			s.mu.Unlock()
			continue
		}
		of, end := context.WithCancelCause(ctx)
		s.calls[m.Number] = end
		s.mu.Unlock()
		running.Go(func() {
			answer, err := s.answer(of, m)
			answer.Number, answer.Done, answer.Error = m.Number, true, pack(err, context.Cause(of))
			s.mu.Lock()
			delete(s.calls, m.Number)
			s.mu.Unlock()
			end(nil)
			s.send(answer)
		})
	}
}

// send writes one line. If the caller is gone, the next read ends Serve.
func (s *server) send(m message) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.out.Encode(m)
}

// answer executes one call.
func (s *server) answer(ctx context.Context, m message) (a message, err error) {
	if m.Call == callOpen {
		return a, s.opened(ctx, m)
	}
	s.mu.Lock()
	scheduler := s.scheduler
	s.mu.Unlock()
	if scheduler == nil {
		return a, errors.New("the scheduler is not open")
	}
	switch m.Call {
	case callSubmit:
		if m.Job == nil {
			return a, errors.New("there is no job to submit")
		}
		a.ID, a.Found, err = scheduler.Submit(ctx, *m.Job)
	case callFind:
		a.ID, a.Found, err = scheduler.Find(ctx, m.Key)
	case callCancel:
		err = scheduler.Cancel(ctx, m.ID)
	case callWait:
		end, failed := scheduler.Wait(ctx, m.ID, func(st job.Status) { s.send(message{Number: m.Number, Status: &st}) })
		a.End, err = &end, failed
	case callLog:
		err = scheduler.Log(ctx, m.ID, printed{s, m.Number})
	default:
		err = fmt.Errorf("no call is named %q", m.Call)
	}
	return a, err
}

func (s *server) opened(ctx context.Context, m message) error {
	if m.Protocol != protocol {
		return fmt.Errorf("it speaks protocol %d, and benchgraph speaks %d: install both of one release", protocol,
			m.Protocol)
	}
	scheduler, err := s.open(ctx, m.Settings, func(text string) { s.send(message{Told: text}) })
	if err == nil {
		s.mu.Lock()
		s.scheduler = scheduler
		s.mu.Unlock()
	}
	return err
}

// printed sends the output of a job.
type printed struct {
	s      *server
	number uint64
}

// mostText limits the bytes of a log in one line.
const mostText = 32 << 10

func (p printed) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		n := min(len(rest), mostText)
		p.s.send(message{Number: p.number, Text: rest[:n]})
		rest = rest[n:]
	}
	return len(text), nil
}
