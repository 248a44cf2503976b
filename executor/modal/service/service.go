// Package service is the implementation of benchgraph-modal: it talks to Modal through Modal's client library.
// Modal's status of a sandbox tells when the sandbox no longer runs; it does not tell whether the job made its
// result.
//
// No conclusion about a sandbox follows from a missing answer.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	client "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
)

// name is the scheduler's name in messages.
const name = "Modal"

// Options are the settings of a Service. The token and Modal's address come from the environment of the process and
// from the user's ~/.modal.toml, as for all programs that use the library. MODAL_SANDBOX_V2 must be 0: the library
// would use the newer kind of sandboxes if they have no GPUs, and no list contains those.
type Options struct {
	modal.Asks
	Told  func(message string) // called once when Modal stops answering, until that is over; may be nil
	Every time.Duration        // first pause between two requests, which doubles; 0: 1 s
}

// Service runs jobs in an app of Modal. It is safe for concurrent use.
type Service struct {
	o       Options
	client  *client.Client
	app     *client.App
	secrets []*client.Secret
	volumes map[string]*client.Volume // by the path at which each is mounted
	login   *client.Secret            // for the registry; nil: none

	troubles job.Troubles

	building sync.Mutex
	image    *client.Image // nil: Modal has not built it yet
}

// throttled limits how long the library may wait silently when Modal throttles it.
const throttled = 10 * time.Second

// Open looks up the app, the secrets and the volumes.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Told == nil {
		o.Told = func(string) {}
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	s := &Service{o: o, troubles: job.Troubles{Tell: o.Told}, volumes: map[string]*client.Volume{}}
	wait := throttled
	c, err := client.NewClientWithOptions(&client.ClientParams{Environment: o.Environment, MaxThrottleWait: &wait,
		Logger: slog.New(warnings{o.Told}), GRPCUnaryInterceptors: []grpc.UnaryClientInterceptor{look}})
	if err != nil {
		return nil, fmt.Errorf("modal: %w", err)
	}
	s.client = c
	s.app, err = c.Apps.FromName(ctx, o.App, &client.AppFromNameParams{CreateIfMissing: true})
	if err != nil {
		return nil, explain("app "+o.App, err)
	}
	for _, name := range o.Secrets {
		secret, err := c.Secrets.FromName(ctx, name, nil)
		if err != nil {
			return nil, explain("secret "+name, err)
		}
		s.secrets = append(s.secrets, secret)
	}
	if o.ImageSecret != "" {
		if s.login, err = c.Secrets.FromName(ctx, o.ImageSecret, nil); err != nil {
			return nil, explain("image_secret "+o.ImageSecret, err)
		}
	}
	for at, name := range o.Volumes {
		if s.volumes[at], err = c.Volumes.FromName(ctx, name, nil); err != nil {
			return nil, explain("volume "+name, err)
		}
	}
	return s, nil
}

// explain returns an error that says why Modal cannot be used.
func explain(what string, err error) error {
	words := clean(err)
	switch {
	case strings.Contains(words, "missing credentials"):
		return errors.New("modal: there is no token; set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or have " +
			"\"modal token new\" write ~/.modal.toml")
	case status.Code(err) == codes.Unauthenticated, status.Code(err) == codes.PermissionDenied:
		return fmt.Errorf("modal: Modal does not take the token: %s; set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET anew, "+
			"or have \"modal token new\" write ~/.modal.toml", words)
	}
	return fmt.Errorf("modal: %s: %s", what, words)
}

// clean returns the message of a library's error as one line.
func clean(err error) string {
	text := err.Error()
	if _, words, ok := strings.Cut(text, " desc = "); ok {
		text = words
	}
	return job.Words(text)
}

// passes reports whether the same request may succeed later. After all such errors except ResourceExhausted, the
// request may have had its effect.
func passes(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Canceled, codes.Aborted,
		codes.ResourceExhausted, codes.Unauthenticated:
		return true
	case codes.Unknown: // also errors from outside the protocol, such as those of the library's own checks
		_, ok := status.FromError(err)
		return ok || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	}
	return false
}

// Temporary troubles.
const (
	silent = "modal: Modal does not answer; benchgraph asks again and again"
	full   = "modal: Modal takes no more sandboxes for now; benchgraph asks again and again"
)

// warnings passes warnings of the library and of Modal to the user.
type warnings struct{ told func(string) }

func (warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler         { return w }
func (w warnings) WithGroup(string) slog.Handler              { return w }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "message" {
			text += ": " + a.Value.String()
		}
		return true
	})
	w.told("modal: " + clean(errors.New(text)))
	return nil
}

// answers collects details of Modal's answers that the library does not pass on. For example, the library reports a
// terminated sandbox as exit code 137, which a command can also return.
type answers struct {
	finished bool // list also sandboxes that have ended
	result   *pb.GenericResult
	listed   []*pb.SandboxInfo
}

type answersKey struct{}

// createdError makes the library's Create return as soon as the sandbox exists.
type createdError struct{ id string }

func (e *createdError) Error() string { return "sandbox " + e.id + " is there" }

// look copies answers on their way to the library.
func look(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	a, ok := ctx.Value(answersKey{}).(*answers)
	if list, is := req.(*pb.SandboxListRequest); ok && is {
		list.SetIncludeFinished(a.finished)
	}
	if err := next(ctx, method, req, reply, cc, opts...); err != nil || !ok {
		return err
	}
	switch r := reply.(type) {
	case *pb.SandboxCreateResponse:
		return &createdError{r.GetSandboxId()}
	case *pb.SandboxListResponse:
		a.listed = append(a.listed, r.GetSandboxes()...)
	case *pb.SandboxWaitResponse:
		a.result = r.GetResult()
	}
	return nil
}

// asked returns a context for a call whose answers go to a.
func asked(ctx context.Context, a *answers) context.Context {
	return context.WithValue(ctx, answersKey{}, a)
}
