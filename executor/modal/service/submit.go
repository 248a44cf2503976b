package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	client "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/modal"
)

const keyTag = "benchgraph_key"

// nameOf returns the name of the sandbox of a key. In an app, Modal gives each name to only one sandbox at a time, so
// two sandboxes of one key never run at once. A key may be too long for a name, so it is hashed.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "benchgraph-" + hex.EncodeToString(sum[:20])
}

// list returns the queued and running sandboxes of a key, and with finished also those that have ended.
func (s *Service) list(ctx context.Context, key string, finished bool) ([]*pb.SandboxInfo, error) {
	a := &answers{finished: finished}
	all, err := s.client.Sandboxes.List(asked(ctx, a), &client.SandboxListParams{AppID: s.app.AppID,
		Tags: map[string]string{keyTag: key}})
	if err != nil {
		return nil, err
	}
	for _, err := range all {
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(a.listed, func(x, y *pb.SandboxInfo) int { return strings.Compare(x.GetId(), y.GetId()) })
	return a.listed, nil
}

func ended(info *pb.SandboxInfo) bool {
	return info.GetTaskInfo().GetFinishedAt() > 0 || info.GetTaskInfo().GetResult().GetStatus() != 0 ||
		info.GetMetadata().GetResult().GetStatus() != 0
}

// Find looks for a queued or running sandbox with a key.
func (s *Service) Find(ctx context.Context, key string) (id job.ID, found bool, err error) {
	all, err := s.list(ctx, key, false)
	if err != nil {
		return "", false, explain("list of sandboxes", err)
	}
	for _, info := range all {
		if !ended(info) {
			return job.NewID(info.GetId(), key), true, nil
		}
	}
	return "", false, nil
}

// submission is one call of Submit.
type submission struct {
	*Service
	job     job.Job
	params  *client.SandboxCreateParams
	known   map[string]bool // earlier sandboxes of the key that had ended; nil: not listed yet
	doubted bool            // the sandbox may exist although its ID is not known
}

// Submit starts a sandbox for a job unless one with the same key is queued or running; then found is true. If an
// answer leaves open whether the sandbox exists, Submit looks for the key before it asks for a sandbox again, until
// ctx ends. It returns Refused if Modal refuses the job, and Unanswered if ctx ends while it is unknown whether the
// sandbox exists.
func (s *Service) Submit(ctx context.Context, j job.Job) (id job.ID, found bool, err error) {
	params, err := s.params(j)
	if err != nil {
		return "", false, err
	}
	sub := submission{Service: s, job: j, params: params}
	for try := 0; ; try++ {
		id, found, err := sub.try(ctx)
		if id != "" {
			s.troubles.Over(silent)
			s.troubles.Over(full)
			return id, found, nil
		}
		if err != nil && !passes(err) && ctx.Err() == nil {
			return "", false, &job.Refused{Scheduler: name, Name: j.Name, Words: clean(err),
				Remedy: "ask for what Modal has (modal.com/docs says so)"}
		}
		if err != nil && status.Code(err) == codes.ResourceExhausted {
			s.troubles.Has(full, clean(err))
		} else if err != nil && ctx.Err() == nil {
			s.troubles.Has(silent, clean(err))
		}
		job.Pause(ctx, s.o.Every, try)
		switch {
		case ctx.Err() != nil && sub.doubted:
			return "", false, &job.Unanswered{Scheduler: name, Key: j.Key, Cause: context.Cause(ctx),
				Remedy: fmt.Sprintf("look for its tag %s among the sandboxes of app %s", keyTag, s.o.App)}
		case ctx.Err() != nil:
			return "", false, context.Cause(ctx)
		}
	}
}

// try looks for the job and starts a sandbox if there is none. It returns an empty ID and no error if the caller must
// try again later.
func (s *submission) try(ctx context.Context) (id job.ID, found bool, err error) {
	all, err := s.list(ctx, s.job.Key, true)
	if err != nil {
		return "", false, err
	}
	first := s.known == nil
	if first {
		s.known = map[string]bool{}
	}
	for _, info := range all {
		switch {
		case !ended(info), !first && !s.known[info.GetId()]: // or it has ended since Submit began
			return job.NewID(info.GetId(), s.job.Key), !s.doubted, nil
		case first:
			s.known[info.GetId()] = true
		}
	}
	image, err := s.built(ctx)
	if err != nil {
		return "", false, err
	}
	// Wait for an answer that is under way: nothing else tells the ID of the sandbox.
	asking, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(lastWord, func() { stop(context.Cause(ctx)) })
	})()
	_, err = s.client.Sandboxes.Create(asked(asking, &answers{}), s.app, image, s.params)
	if made, ok := errors.AsType[*createdError](err); ok {
		return job.NewID(made.id, s.job.Key), false, nil
	}
	if _, ok := errors.AsType[client.AlreadyExistsError](err); ok { // another submission won, or an answer was lost
		return "", false, nil
	}
	s.doubted = s.doubted || passes(err) && status.Code(err) != codes.ResourceExhausted
	return "", false, err
}

// lastWord is how long a running call may continue after ctx has ended.
const lastWord = 15 * time.Second

// built returns the image, which Modal builds once.
func (s *Service) built(ctx context.Context) (*client.Image, error) {
	s.building.Lock()
	defer s.building.Unlock()
	if s.image != nil {
		return s.image, nil
	}
	params := &client.ImageFromRegistryParams{Secret: s.login}
	image, err := s.client.Images.FromRegistry(s.o.Image, params).Build(ctx, s.app, nil)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", s.o.Image, err)
	}
	s.image = image
	return image, nil
}

// mostRequest limits the variables with the request, in bytes. The kernel accepts up to 2 MiB.
const mostRequest = 1 << 20

// Lines of the script before and after the lines that write the request to a file.
const (
	prologue = "umask 077\nexec 2>&1\n"
	named    = `[ -z "$MODAL_SANDBOX_ID" ] || export ` + job.NameVariable + `="$MODAL_SANDBOX_ID"` + "\n"
)

// params returns the parameters of the library's Create.
func (s *Service) params(j job.Job) (*client.SandboxCreateParams, error) {
	if !job.IsKey(j.Key) {
		return nil, fmt.Errorf("job %q: its key %q is to be made of letters, digits and . _ : -, %d at most", j.Name,
			j.Key, job.MaxKey)
	}
	if j.GPUs > 0 && s.o.GPU == "" {
		return nil, &job.Refused{Scheduler: name, Name: j.Name,
			Words:  "the node needs GPUs, and the executor names none",
			Remedy: `set gpu in the executor block, such as gpu = "H100"`}
	}
	p := &client.SandboxCreateParams{CPU: float64(j.CPUs), MemoryMiB: int((j.Memory + 1<<20 - 1) >> 20),
		Timeout: modal.LongestTime, Cloud: s.o.Cloud, Regions: s.o.Regions, Volumes: s.volumes, Name: nameOf(j.Key),
		Tags: map[string]string{keyTag: j.Key}, Secrets: s.secrets, Env: map[string]string{}}
	if j.GPUs > 0 {
		p.GPU = fmt.Sprintf("%s:%d", s.o.GPU, j.GPUs)
	}
	if j.Time > 0 {
		p.Timeout = min((j.Time + time.Second - 1).Truncate(time.Second), modal.LongestTime)
	}
	for _, v := range j.Environ {
		name, value, _ := strings.Cut(v, "=")
		p.Env[name] = value
	}
	parts, lines, err := job.Handed(j.Request, "", mostRequest)
	if err != nil {
		return nil, &job.Refused{Scheduler: name, Name: j.Name, Words: err.Error(),
			Remedy: "split the project: the request has the whole choice of commits"}
	}
	maps.Copy(p.Env, parts)
	p.Command = []string{"/bin/sh", "-c", prologue + lines + named + j.Script}
	return p, nil
}
