package modaltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sandbox is a sandbox that the library created.
type Sandbox struct {
	ID    string
	App   string
	Name  string
	GPU   string // such as H100:2; empty: none
	CPU   float64
	MiB   int
	Image string // its Dockerfile
	Login string // ID of the secret with the login of the registry
	Limit time.Duration
	Tags  map[string]string

	definition *pb.Sandbox
	server     *Server
	dir        string
	created    time.Time
	over       chan struct{} // closed when it has ended

	mu       sync.Mutex
	cmd      *exec.Cmd // nil: not started
	started  time.Time
	finished time.Time
	result   *pb.GenericResult
	asked    *pb.GenericResult // the result that the server imposes; nil: none
	entries  [][]byte          // of its standard output
	printed  chan struct{}     // closed when there are more entries, and replaced
}

// SandboxCreate queues a sandbox.
func (s *Server) SandboxCreate(_ context.Context, r *pb.SandboxCreateRequest) (*pb.SandboxCreateResponse, error) {
	d := r.GetDefinition()
	s.mu.Lock()
	for _, sb := range s.sandboxes {
		if sb.App == r.GetAppId() && sb.Name == d.GetName() && sb.Name != "" && sb.ended() == nil {
			s.mu.Unlock()
			return nil, status.Errorf(codes.AlreadyExists, "Sandbox with name '%s' already exists", sb.Name)
		}
	}
	if d.GetTimeoutSecs() > 24*60*60 {
		s.mu.Unlock()
		return nil, status.Error(codes.InvalidArgument, "Sandbox timeout must be at most 24 hours")
	}
	if d.GetResources().GetGpuConfig().GetCount() > 8 {
		s.mu.Unlock()
		return nil, status.Error(codes.InvalidArgument, "GPU count must be at most 8")
	}
	s.last++
	sb := &Sandbox{ID: fmt.Sprintf("sb-%022d", s.last), App: r.GetAppId(), Name: d.GetName(),
		CPU: float64(d.GetResources().GetMilliCpu()) / 1000, MiB: int(d.GetResources().GetMemoryMb()),
		Image: s.images[d.GetImageId()], Login: s.logins[d.GetImageId()],
		Limit: time.Duration(d.GetTimeoutSecs()) * time.Second, Tags: map[string]string{}, definition: d, server: s,
		created: time.Now(), over: make(chan struct{}), printed: make(chan struct{})}
	if gpu := d.GetResources().GetGpuConfig(); gpu.GetCount() > 0 {
		sb.GPU = fmt.Sprintf("%s:%d", gpu.GetGpuType(), gpu.GetCount())
	}
	for _, tag := range r.GetTags() {
		sb.Tags[tag.GetTagName()] = tag.GetTagValue()
	}
	sb.dir = filepath.Join(s.dir, sb.ID)
	s.sandboxes = append(s.sandboxes, sb)
	s.mu.Unlock()
	s.schedule()
	return pb.SandboxCreateResponse_builder{SandboxId: sb.ID}.Build(), nil
}

func (sb *Sandbox) gpus() int { return int(sb.definition.GetResources().GetGpuConfig().GetCount()) }

// schedule starts the queued sandboxes for which there is capacity.
func (s *Server) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := 0
	for _, sb := range s.sandboxes {
		if !sb.Started().IsZero() && sb.ended() == nil {
			used += sb.gpus()
		}
	}
	for _, sb := range s.sandboxes {
		if sb.Started().IsZero() && sb.ended() == nil && !s.held && (s.capacity < 0 || used+sb.gpus() <= s.capacity) {
			used += sb.gpus()
			sb.start(s.environOf(sb), s.mountsOf(sb))
		}
	}
}

// environOf returns the variables of a sandbox, which has none of this process.
func (s *Server) environOf(sb *Sandbox) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "MODAL_IS_REMOTE=1",
		"MODAL_SANDBOX_ID=" + sb.ID, "MODAL_TASK_ID=" + sb.task()}
	if s.environ != nil {
		env = append(env, s.environ(sb.ID, sb.gpus())...)
	}
	for _, id := range sb.definition.GetSecretIds() {
		for name, value := range s.secrets[id] {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (s *Server) mountsOf(sb *Sandbox) (pairs []string) {
	for _, m := range sb.definition.GetVolumeMounts() {
		pairs = append(pairs, filepath.Join(s.dir, m.GetVolumeId()), m.GetMountPath())
	}
	return pairs
}

func (sb *Sandbox) task() string { return "ta-" + strings.TrimPrefix(sb.ID, "sb-") }

// mounting is a script that binds pairs of directories and then runs the command after "--".
const mounting = `while [ "$1" != -- ]; do mkdir -p "$2" && mount --bind "$1" "$2" || exit 126; shift 2; done
shift; exec "$@"`

// start runs the command. With volumes, it has its own mount namespace.
func (sb *Sandbox) start(environ, mounts []string) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.started = time.Now()
	args := sb.definition.GetEntrypointArgs()
	if len(mounts) > 0 {
		args = slices.Concat([]string{"/bin/sh", "-c", mounting, "sh"}, mounts, []string{"--"}, args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environ, sb.dir, time.Second
	cmd.SysProcAttr = processOf(len(mounts) > 0)
	cmd.Stdout = sb
	cmd.Stderr = &bytes.Buffer{}
	sb.cmd = cmd
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process ends with its thread
		err := os.MkdirAll(sb.dir, 0o700)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		var limit *time.Timer
		if err == nil {
			limit = time.AfterFunc(sb.Limit, func() { sb.end(pb.GenericResult_GENERIC_STATUS_TIMEOUT, "") })
			err = cmd.Wait()
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // kill remaining processes
			limit.Stop()
		}
		sb.finish(err)
		sb.server.schedule()
	}()
	if err := <-started; err != nil {
		sb.asked = pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_INIT_FAILURE,
			Exception: err.Error()}.Build()
	}
}

// finish records the end of the command.
func (sb *Sandbox) finish(err error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.result != nil {
		return
	}
	sb.result = sb.asked
	if sb.result == nil {
		code := 0
		if state := sb.cmd.ProcessState; state != nil {
			ws := state.Sys().(syscall.WaitStatus)
			if code = ws.ExitStatus(); ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
		}
		st := pb.GenericResult_GENERIC_STATUS_SUCCESS
		if code != 0 || err != nil {
			st = pb.GenericResult_GENERIC_STATUS_FAILURE
		}
		sb.result = pb.GenericResult_builder{Status: st, Exitcode: int32(code)}.Build()
	}
	sb.finished = time.Now()
	close(sb.over)
	sb.more()
}

// end ends the sandbox and its processes with a result.
func (sb *Sandbox) end(st pb.GenericResult_GenericStatus, words string) {
	sb.mu.Lock()
	if sb.asked == nil {
		sb.asked = pb.GenericResult_builder{Status: st, Exception: words}.Build()
	}
	cmd := sb.cmd
	queued := sb.started.IsZero()
	sb.mu.Unlock()
	if queued {
		sb.finish(nil)
	} else if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// Terminate ends a sandbox as a person can do on Modal's pages.
func (sb *Sandbox) Terminate() { sb.end(pb.GenericResult_GENERIC_STATUS_TERMINATED, "") }

// Preempt ends a sandbox as Modal does when it needs the machine for others.
func (sb *Sandbox) Preempt() {
	sb.end(pb.GenericResult_GENERIC_STATUS_TERMINATED, "The worker was preempted")
}

// Evict ends a sandbox because of its memory.
func (sb *Sandbox) Evict() { sb.end(pb.GenericResult_GENERIC_STATUS_MEMORY_MANAGER_EVICTION, "") }

// Break ends a sandbox as if its machine had failed.
func (sb *Sandbox) Break() {
	sb.end(pb.GenericResult_GENERIC_STATUS_INTERNAL_FAILURE, "The worker was lost")
}

// Started returns when the sandbox started; zero while it is queued.
func (sb *Sandbox) Started() time.Time {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.started
}

// ended returns the result of the sandbox; nil until it has ended.
func (sb *Sandbox) ended() *pb.GenericResult {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.result
}

// State returns the result in the protocol's words, such as SUCCESS; before the end, QUEUED or RUNNING.
func (sb *Sandbox) State() string {
	if r := sb.ended(); r != nil {
		return strings.TrimPrefix(r.GetStatus().String(), "GENERIC_STATUS_")
	}
	if sb.Started().IsZero() {
		return "QUEUED"
	}
	return "RUNNING"
}

// Output returns the output of the sandbox.
func (sb *Sandbox) Output() string {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return string(bytes.Join(sb.entries, nil))
}

// Write records output of the sandbox. The protocol carries text, so invalid bytes are replaced.
func (sb *Sandbox) Write(p []byte) (int, error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.entries = append(sb.entries, bytes.ToValidUTF8(p, []byte("\uFFFD")))
	sb.more()
	return len(p), nil
}

func (sb *Sandbox) more() {
	close(sb.printed)
	sb.printed = make(chan struct{})
}

func (s *Server) sandbox(id string) (*Sandbox, error) {
	for _, sb := range s.Sandboxes() {
		if sb.ID == id {
			return sb, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "Sandbox %s not found", id)
}

// Forget makes the server forget a sandbox.
func (s *Server) Forget(gone *Sandbox) {
	s.mu.Lock()
	s.sandboxes = slices.DeleteFunc(s.sandboxes, func(sb *Sandbox) bool { return sb == gone })
	s.mu.Unlock()
	gone.Terminate()
}

// SandboxWait returns at the end of a sandbox or after a time-out. It fails if the sandbox was forgotten meanwhile.
func (s *Server) SandboxWait(ctx context.Context, r *pb.SandboxWaitRequest) (*pb.SandboxWaitResponse, error) {
	sb, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	select {
	case <-sb.over:
	case <-ctx.Done():
	case <-time.After(time.Duration(float64(r.GetTimeout()) * float64(time.Second))):
	}
	if _, err := s.sandbox(sb.ID); err != nil {
		return nil, err
	}
	return pb.SandboxWaitResponse_builder{Result: sb.ended()}.Build(), nil
}

// SandboxTerminate ends a sandbox without waiting for the end.
func (s *Server) SandboxTerminate(_ context.Context, r *pb.SandboxTerminateRequest) (*pb.SandboxTerminateResponse,
	error) {
	sb, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return nil, err
	}
	before := sb.ended()
	if before == nil {
		sb.Terminate()
	}
	return pb.SandboxTerminateResponse_builder{ExistingResult: before}.Build(), nil
}

// pageOf is the largest number of sandboxes in one answer.
const pageOf = 3

// SandboxList lists sandboxes, the newest first, one page at a time.
func (s *Server) SandboxList(_ context.Context, r *pb.SandboxListRequest) (*pb.SandboxListResponse, error) {
	var page []*pb.SandboxInfo
	all := s.Sandboxes()
	slices.Reverse(all)
	for _, sb := range all {
		matches := sb.App == r.GetAppId() && (r.GetIncludeFinished() || sb.ended() == nil) &&
			(r.GetBeforeTimestamp() == 0 || seconds(sb.created) < r.GetBeforeTimestamp())
		for _, tag := range r.GetTags() {
			matches = matches && sb.Tags[tag.GetTagName()] == tag.GetTagValue()
		}
		if matches && len(page) < pageOf {
			page = append(page, sb.info())
		}
	}
	return pb.SandboxListResponse_builder{Sandboxes: page}.Build(), nil
}

func (sb *Sandbox) info() *pb.SandboxInfo {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	var tags []*pb.SandboxTag
	for name, value := range sb.Tags {
		tags = append(tags, pb.SandboxTag_builder{TagName: name, TagValue: value}.Build())
	}
	task := pb.TaskInfo_builder{EnqueuedAt: seconds(sb.created)}
	if !sb.started.IsZero() {
		task.Id, task.StartedAt = sb.task(), seconds(sb.started)
	}
	if sb.result != nil {
		task.FinishedAt, task.Result = seconds(sb.finished), sb.result
	}
	return pb.SandboxInfo_builder{Id: sb.ID, CreatedAt: seconds(sb.created), AppId: sb.App, Name: sb.Name, Tags: tags,
		TaskInfo: task.Build()}.Build()
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// SandboxGetLogs streams the standard output of a sandbox from an entry on.
func (s *Server) SandboxGetLogs(r *pb.SandboxGetLogsRequest, to pb.ModalClient_SandboxGetLogsServer) error {
	sb, err := s.sandbox(r.GetSandboxId())
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(r.GetLastEntryId(), "-")
	next, _ := strconv.Atoi(first)
	late := time.After(time.Duration(float64(r.GetTimeout()) * float64(time.Second)))
	for {
		sb.mu.Lock()
		rest, more, done := slices.Clone(sb.entries[min(next, len(sb.entries)):]), sb.printed, sb.result != nil
		sb.mu.Unlock()
		if r.GetFileDescriptor() != pb.FileDescriptor_FILE_DESCRIPTOR_STDOUT {
			rest = nil
		}
		batch := func(eof bool, items ...*pb.TaskLogs) error {
			return to.Send(pb.TaskLogsBatch_builder{SandboxId: sb.ID, EntryId: fmt.Sprintf("%d-0", next), Items: items,
				Eof: eof}.Build())
		}
		for _, text := range rest {
			next++
			item := pb.TaskLogs_builder{Data: string(text), FileDescriptor: r.GetFileDescriptor()}.Build()
			if err := batch(false, item); err != nil {
				return err
			}
		}
		if done {
			return batch(true)
		}
		select {
		case <-more:
		case <-late:
			return nil
		case <-to.Context().Done():
			return to.Context().Err()
		}
	}
}
