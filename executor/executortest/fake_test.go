package executortest_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/executortest"
)

func TestFakePlaysItsRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("no memory")
		f := executortest.NewFake().
			On("pip wheel", func(cmd executor.Command) executortest.FakeRun {
				return executortest.FakeRun{
					Stdout: "token abc\n",
					Stderr: "warning\n",
					Takes:  time.Hour,
					Status: executor.Status{Code: 2},
				}
			}).
			On("server", func(executor.Command) executortest.FakeRun { return executortest.FakeRun{Serves: true} }).
			On("refused", func(executor.Command) executortest.FakeRun { return executortest.FakeRun{Err: refused} })
		var out bytes.Buffer
		begun := time.Now()
		s, err := executor.Run(
			t.Context(),
			f,
			executor.Command{
				Argv:    []string{"sh", "-c", "pip wheel ."},
				Stdout:  &out,
				Stderr:  &out,
				Secrets: []string{"abc"},
			},
		)
		if err != nil || s.Code != 2 || time.Since(begun) != time.Hour || out.String() != "token ***\nwarning\n" {
			t.Errorf("%+v, %v, %q", s, err, &out)
		}

		server, err := f.Start(t.Context(), executor.Command{Argv: []string{"server"}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		select {
		case <-server.Done():
			t.Error("the server ended by itself")
		default:
		}
		if s, err := server.Stop(); err != nil || s.Signal != "SIGTERM" {
			t.Errorf("%+v, %v", s, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := executor.Run(ctx, f, executor.Command{Argv: []string{"server"}}); !errors.Is(
			err,
			context.DeadlineExceeded,
		) {
			t.Errorf("after its time: %v", err)
		}
		if _, err := f.Start(ctx, executor.Command{Argv: []string{"server"}}); !errors.Is(
			err,
			context.DeadlineExceeded,
		) {
			t.Errorf("started after its time: %v", err)
		}
		if _, err := f.Start(t.Context(), executor.Command{Argv: []string{"refused"}}); !errors.Is(err, refused) {
			t.Error(err)
		}
		if _, err := f.Start(t.Context(), executor.Command{Argv: []string{"unknown"}}); !errors.Is(
			err,
			fs.ErrNotExist,
		) {
			t.Error(err)
		}
		if n := len(f.Calls()); n != 5 {
			t.Errorf("%d calls were recorded, want 5", n)
		}
	})
}
