package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"

	"github.com/benchgraph/benchgraph/container/registry"
	"github.com/benchgraph/benchgraph/failure"
	"github.com/benchgraph/benchgraph/internal/printable"
)

// Unavailable is the error for an engine that does not answer.
type Unavailable struct {
	Host   string
	Reason string
	Remedy string
}

func (e *Unavailable) Error() string {
	return fmt.Sprintf("no container engine at %s: %s; %s", e.Host, e.Reason, e.Remedy)
}

// Error is an error that the engine returned for a request, or that left the request without an answer.
type Error struct {
	Doing  string // "start container"
	Reason string
	Remedy string // may be empty
	Class  failure.Class
	Err    error
}

func (e *Error) Error() string {
	text := e.Doing + ": " + e.Reason
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Class returns the class of an error of an Engine. Errors that no engine sent are permanent.
func Class(err error) failure.Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if _, ok := errors.AsType[*Unavailable](err); ok {
		return failure.Infra
	}
	if r, ok := errors.AsType[*registry.Error](err); ok && r.Passing() {
		return failure.Transient
	}
	return failure.Permanent
}

// IsNotFound reports whether the engine does not have the requested object.
func IsNotFound(err error) bool {
	return errdefs.IsNotFound(err) || err != nil && strings.HasSuffix(err.Error(), "no such container") // Podman
}

// IsShared reports whether the engine keeps a container because another one uses its network, as Podman does.
func IsShared(err error) bool { return err != nil && says(err.Error(), "has dependent containers") }

// IsGone reports whether the engine went away before it answered.
func IsGone(err error) bool {
	_, ok := errors.AsType[*Unavailable](err)
	return ok || errors.Is(err, errBrokeOff)
}

var errBrokeOff = errors.New("the engine broke off")

// brokeOff returns the error for an engine that went away during a request, and may be back.
func brokeOff(doing string, err error) *Error {
	return &Error{
		Doing: doing, Class: failure.Transient, Err: fmt.Errorf("%w: %w", errBrokeOff, err),
		Reason: "the container engine broke off (" + err.Error() + ")",
		Remedy: "it was restarted, or has crashed: its log says more (journalctl -u docker)",
	}
}

// explain adds the meaning to a client's error. If ctx has ended, it returns the cause of ctx.
func (e *Engine) explain(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*registry.Error)), errors.As(err, new(*StepError)), errors.As(err, new(*Unavailable)):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &Unavailable{e.Host(), fmt.Sprintf("it did not answer within %s (%s)", e.patience(), doing),
			"look at its log (journalctl -u docker), and restart it when nothing else uses it"}
	case connectionBroke(err):
		u := e.unreachable()
		if u == nil {
			u = e.silent(ctx)
		}
		if u != nil {
			return u
		}
		return brokeOff(doing, err)
	}
	text := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	out := &Error{Doing: doing, Reason: printable.Excerpt(text), Class: failure.Permanent, Err: err}
	for _, m := range meanings {
		if says(text, m.words) {
			out.Class, out.Remedy = m.class, m.remedy
			return out
		}
	}
	if u := e.behind(ctx, err); u != nil {
		return u
	}
	if errdefs.IsUnavailable(err) || errdefs.IsConflict(err) {
		out.Class = failure.Transient
	}
	return out
}

// connectionBroke reports whether a request has no answer or an incomplete one.
func connectionBroke(err error) bool {
	return connectionFailed(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused reports whether a server understood a request and refuses it (4xx).
func refused(err error) bool {
	return errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) || errdefs.IsConflict(err) ||
		errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) || errdefs.IsResourceExhausted(err) ||
		errdefs.IsFailedPrecondition(err) || errdefs.IsNotModified(err)
}

// behind returns a reason if an error does not come from the engine, but from a proxy whose engine is away; nil: the
// engine answers.
func (e *Engine) behind(ctx context.Context, err error) *Unavailable {
	if refused(err) {
		return nil
	}
	return e.silent(ctx)
}

// silent returns why a reachable engine counts as away: it does not answer a ping. An engine that refuses the ping,
// such as a proxy that lets only some requests through, is there. It returns nil if the engine is there.
func (e *Engine) silent(ctx context.Context) *Unavailable {
	a, err := e.connect()
	if err != nil {
		return nil // the caller has that error already
	}
	limited, cancel := context.WithTimeout(ctx, min(10*time.Second, e.patience()))
	defer cancel()
	_, err = a.Ping(limited)
	u := &Unavailable{Host: e.Host(), Remedy: "look at its log (journalctl -u docker), and at what stands between"}
	switch {
	case err == nil, refused(err), ctx.Err() != nil:
		return nil
	case connectionBroke(err):
		u.Reason = "it closes connections without an answer"
	case errors.Is(err, context.DeadlineExceeded):
		u.Reason = "it does not answer a ping"
	default:
		text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "Error response from daemon: "), " for API route")
		u.Reason = "a ping gets an error (" + printable.Excerpt(text) + ")"
	}
	return u
}

// meaning is the meaning of an engine's message.
type meaning struct {
	words  string // alternatives, separated by |
	class  failure.Class
	remedy string
}

// says reports whether a text contains one of the words, which are separated by |. Case does not matter.
func says(text, words string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(strings.Split(strings.ToLower(words), "|"), func(word string) bool {
		return strings.Contains(text, word)
	})
}

// noSpace matches messages about a full disk.
const noSpace = "no space left on device|disk quota exceeded"

// noGPUs matches messages of engines without NVIDIA devices for containers, with NVIDIA's runtime or CDI.
const noGPUs = `capabilities: [[gpu]]|device driver "cdi"|CDI device injection failed|CDI devices nvidia.com/gpu|` +
	"GPU vendor from CDI|AMD CDI spec"

// LacksGPUs reports whether an engine failed because it has no NVIDIA devices for containers.
func LacksGPUs(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && says(e.Reason, noGPUs)
}

// NoGPUs returns the error for an engine that ignores a request for NVIDIA devices.
func (e *Engine) NoGPUs() error {
	return e.explain(context.Background(), "start container", errors.New("no CDI devices nvidia.com/gpu"))
}

// meanings lists known messages of engines. Status codes say little: most are 500.
var meanings = []meaning{
	{noSpace, failure.Infra, "make room where the engine keeps its images (docker system df)"},
	{"there is no /dev/nvidiactl", failure.Infra, "load NVIDIA's driver on the node (nvidia-modprobe)"},
	{"Apptainer cannot do that", failure.Infra, "run it where there is Docker: see docs/cluster.md"},
	{"bind source path does not exist|statfs /", failure.Infra, "the engine does not see the directory: where " +
		"benchgraph runs in a container, mount the project at the same path as on the host of the engine"},
	{"client version", failure.Infra, "unset DOCKER_API_VERSION: benchgraph then takes the newest that both know"},
	{"No such image", failure.Infra, "it was removed from the engine meanwhile: apply again"},
	{noGPUs, failure.Infra,
		"install the NVIDIA Container Toolkit, and make the devices known to the engine (nvidia-ctk runtime " +
			"configure, or nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml)"},
	{"nvidia-container-cli", failure.Infra,
		"see whether nvidia-smi works on the host, and whether the NVIDIA Container Toolkit fits the driver"},
	{"address pool", failure.Infra, "remove networks that nobody uses (docker network prune), or give the engine " +
		"more addresses (default-address-pools)"},
	{"container-init binary|docker-init", failure.Infra, "install the init program of the engine (catatonit or tini)"},
	{"Requested CPUs are not available", failure.Permanent, "name cores that the machine has"},
	{"resource temporarily unavailable", failure.Transient, "the limit of processes is reached: run fewer at a time"},
	{"error gathering device information|container create: stat /dev/", failure.Infra, // Docker, Podman
		"this machine does not have the device: load its driver, or leave it out of devices"},
	{"setting rlimit|crun: setrlimit", failure.Infra,
		"the engine may not raise a limit so far: lower ulimits, or raise the engine's own (LimitMEMLOCK=infinity " +
			"or LimitNOFILE=infinity in its systemd unit)"},
	{"too many open files", failure.Infra, "raise the limit of open files of the engine"},
	{"context deadline exceeded", failure.Transient, "the engine has too much to do"},
	{"transport is closing|shutting down", failure.Transient, "the engine is being restarted"},
}

// unreachable returns why no connection is possible; nil: the connection works.
func (e *Engine) unreachable() *Unavailable {
	host := e.Host()
	network, address, _ := strings.Cut(host, "://")
	u := &Unavailable{Host: host, Remedy: "start it (sudo systemctl start docker), or name another one in DOCKER_HOST"}
	switch network {
	case "unix", "tcp":
	case "http", "https":
		network = "tcp"
	default:
		u.Reason = "engines are not reached by " + network
		u.Remedy = "forward its socket (ssh -nNL /tmp/engine.sock:/var/run/docker.sock HOST) and set " +
			"DOCKER_HOST=unix:///tmp/engine.sock"
		return u
	}
	c, err := net.DialTimeout(network, address, min(10*time.Second, e.patience()))
	if err == nil {
		c.Close()
		return nil
	}
	switch {
	case network == "tcp":
		u.Reason = err.Error()
	case errors.Is(err, fs.ErrNotExist):
		u.Reason = "there is no such socket"
		u.Remedy = "install Docker (https://docs.docker.com/engine/install), start it (sudo systemctl start " +
			"docker), or name another engine in DOCKER_HOST"
	case errors.Is(err, fs.ErrPermission):
		u.Reason = "permission denied"
		u.Remedy = "name an engine of your own (docker context use rootless, or DOCKER_HOST), or join the group " +
			"docker (sudo usermod -aG docker $USER), which gives you the rights of root, and log in again"
	case errors.Is(err, syscall.ECONNREFUSED):
		u.Reason = "nobody listens at the socket"
	default:
		u.Reason = err.Error()
	}
	return u
}
