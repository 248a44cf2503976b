package service

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	client "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchgraph/benchgraph/executor/job"
)

// sandbox returns a handle for a sandbox; the library makes it without a request.
func (s *Service) sandbox(ctx context.Context, id job.ID) (*client.Sandbox, error) {
	if err := id.Check(func(name string) bool { return strings.HasPrefix(name, "sb-") }); err != nil {
		return nil, err
	}
	return s.client.Sandboxes.FromID(ctx, id.Name(), nil)
}

// Wait follows a sandbox to its end. told is called when its status changes; it may be nil. A sandbox that Modal does
// not know is lost. If Modal does not answer, Wait continues until it does or ctx ends.
func (s *Service) Wait(ctx context.Context, id job.ID, told func(job.Status)) (job.End, error) {
	sb, err := s.sandbox(ctx, id)
	if err != nil {
		return job.End{}, err
	}
	watching, stop := context.WithCancel(ctx)
	begun := make(chan job.Status, 1) // the last status that begins saw
	go func() { begun <- s.begins(watching, id, told) }()
	result, err := s.result(ctx, sb)
	stop()
	last := <-begun
	if err != nil {
		return job.End{}, err
	}
	if result == nil {
		return job.End{Status: last, Lost: true}, nil
	}
	if last.State != job.Running { // the sandbox ended before begins saw it run
		last = s.status(ctx, id, last)
	}
	end := endOf(result)
	end.Node, end.Submitted, end.Started = last.Node, last.Submitted, last.Started
	return end, nil
}

// result waits for the end of a sandbox and returns its result; nil if Modal does not know the sandbox.
func (s *Service) result(ctx context.Context, sb *client.Sandbox) (*pb.GenericResult, error) {
	for try := 0; ; try++ {
		a := &answers{}
		_, err := sb.Wait(asked(ctx, a), nil)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil && a.result.GetStatus() != pb.GenericResult_GENERIC_STATUS_UNSPECIFIED:
			s.troubles.Over(silent)
			return a.result, nil
		case status.Code(err) == codes.NotFound:
			return nil, nil
		case err != nil:
			s.troubles.Has(silent, clean(err))
		}
		job.Pause(ctx, s.o.Every, try)
	}
}

// begins polls a sandbox until it runs, and returns its last status.
func (s *Service) begins(ctx context.Context, id job.ID, told func(job.Status)) job.Status {
	var last job.Status
	for try := 0; ; try++ {
		now := s.status(ctx, id, last)
		if told != nil && now != last && now.State != "" {
			told(now)
		}
		if last = now; last.State == job.Running || ctx.Err() != nil {
			return last
		}
		job.Pause(ctx, s.o.Every, try)
	}
}

// status returns the status of a sandbox, also after its end; it returns last if Modal does not tell.
func (s *Service) status(ctx context.Context, id job.ID, last job.Status) job.Status {
	ctx, stop := context.WithTimeout(ctx, lastWord)
	defer stop()
	all, err := s.list(ctx, id.Key(), true)
	if err != nil {
		return last
	}
	for _, info := range all {
		if info.GetId() != id.Name() {
			continue
		}
		st := job.Status{State: job.Pending, Submitted: moment(info.GetCreatedAt())}
		if task := info.GetTaskInfo(); task.GetStartedAt() > 0 {
			st.State, st.Node, st.Started = job.Running, task.GetId(), moment(task.GetStartedAt())
		}
		return st
	}
	return last
}

// moment converts Modal's time in seconds since 1970.
func moment(seconds float64) time.Time {
	if !(seconds > 0) || seconds > 1<<40 {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

// endOf converts a result. When a machine runs out of memory, Modal evicts sandboxes that use more than they asked
// for.
func endOf(r *pb.GenericResult) job.End {
	words := clean(errors.New(r.GetException() + " " + r.GetPropagationReason()))
	end := job.End{Status: job.Status{State: job.Failed, Reason: words}}
	switch r.GetStatus() {
	case pb.GenericResult_GENERIC_STATUS_SUCCESS:
		end.State = job.Completed
	case pb.GenericResult_GENERIC_STATUS_TERMINATED:
		end.State = "CANCELLED"
	case pb.GenericResult_GENERIC_STATUS_TIMEOUT:
		end.State = job.Timeout
	case pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION:
		end.State = job.OutOfMemory
	case pb.GenericResult_GENERIC_STATUS_INIT_FAILURE:
		end.State = "BOOT_FAIL"
	case pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE:
		end.State = "NODE_FAIL"
	case pb.GenericResult_GENERIC_STATUS_IDLE_TIMEOUT:
		end.State = "CANCELLED"
	default:
		end.Code, end.Signal = job.Exit(int(r.GetExitcode()))
	}
	if strings.Contains(strings.ToLower(words), "preempt") && (end.State == "CANCELLED" || end.State == "NODE_FAIL") {
		end.State = "PREEMPTED"
	}
	return end
}

// Cancel terminates a sandbox and returns when it has ended. It succeeds if Modal does not know the sandbox.
func (s *Service) Cancel(ctx context.Context, id job.ID) error {
	sb, err := s.sandbox(ctx, id)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		_, err := sb.Terminate(ctx, nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case status.Code(err) == codes.NotFound:
			return nil
		case err == nil:
			_, err = s.result(ctx, sb)
			return err
		case !passes(err):
			return explain("sandbox "+id.Name(), err)
		}
		s.troubles.Has(silent, clean(err))
		job.Pause(ctx, s.o.Every, try)
	}
}

// Log writes the output of a sandbox, and follows a running one.
func (s *Service) Log(ctx context.Context, id job.ID, w io.Writer) error {
	sb, err := s.sandbox(ctx, id)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = sb.Stdout.Close() })()
	_, err = io.Copy(w, sb.Stdout)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
