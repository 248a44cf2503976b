//go:build linux

// Package apptainer is a container engine for machines without a daemon, such as the nodes of clusters. It runs
// images with Apptainer, as the user of this process, and serves the part of the Docker Engine API that runs need. So
// callers need not know a second kind of engine. It changes no images: they are made elsewhere and pulled from a
// registry by digest.
package apptainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"golang.org/x/sys/unix"

	"github.com/benchgraph/benchgraph/container/endpoint"
	"github.com/benchgraph/benchgraph/executor"
	"github.com/benchgraph/benchgraph/executor/apptainer/images"
	"github.com/benchgraph/benchgraph/internal/fs"
)

// Options are the settings of an engine.
type Options struct {
	Environ map[string]string // environment of this process; PATH, HOME and TMPDIR are used
	Dir     string            // directory of images, shared by all engines of this user
	Host    executor.Executor // runs Apptainer
}

// Engine serves the API at a socket that only this user can reach.
type Engine struct {
	options Options
	program string // path of Apptainer
	images  images.Store
	own     *fs.Temporary
	scratch string // path of own: holds the socket and the writable directories of containers
	server  http.Server
	about   func() (version string, err error)

	mu    sync.Mutex
	boxes map[string]*box // by ID and by name
	execs map[string]*box // by ID
}

// Find returns the Apptainer of the machine. It is empty if there is none.
func Find(environ map[string]string) string {
	path, _ := lookUp(environ, "apptainer")
	return path
}

// Instead opens an engine if the environment names no other engine, this user cannot reach Docker's socket, and
// Apptainer is installed. Otherwise it returns nil, whose methods change nothing. Images are kept below dir. Errors
// are passed to tell.
func Instead(environ map[string]string, dir string, host executor.Executor, tell func(string, ...any)) *Engine {
	if !endpoint.Standard(environ) || unix.Access(dockerSocket, unix.W_OK) == nil || Find(environ) == "" {
		return nil
	}
	e, err := Open(Options{Environ: environ, Dir: filepath.Join(dir, "apptainer"), Host: host})
	if err != nil {
		tell("Warning: Apptainer is not used: %v", err)
		return nil
	}
	return e
}

const dockerSocket = "/var/run/docker.sock"

// lookUp returns the path of a program of this machine.
func lookUp(environ map[string]string, name string) (string, error) {
	for _, dir := range filepath.SplitList(environ["PATH"] + ":" + usualPath) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", images.Cannot("the machine has no %s", name)
}

func (e *Engine) tool(name string) (string, error) { return lookUp(e.options.Environ, name) }

// Open returns an engine that listens. The caller must close it.
func Open(o Options) (*Engine, error) {
	dir := o.Environ["TMPDIR"]
	if len(dir) > longestDir {
		dir = "/tmp"
	}
	own, err := fs.NewTemporary(dir, "benchgraph-apptainer-")
	if err != nil {
		return nil, err
	}
	scratch := own.Path
	e := &Engine{options: o, program: Find(o.Environ), scratch: scratch, own: own, boxes: map[string]*box{},
		execs: map[string]*box{}}
	e.images = images.Store{Dir: o.Dir, Host: o.Host, Environ: e.environ()}
	e.about = sync.OnceValues(e.try)
	e.server.Handler = e.routes()
	for name, text := range map[string]string{"hosts": hosts, "seccomp.json": filter} {
		err = errors.Join(err, os.WriteFile(filepath.Join(scratch, name), []byte(text), 0o644))
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(scratch, "empty"), 0o755))
	var l net.Listener
	if err == nil {
		l, err = net.Listen("unix", filepath.Join(scratch, "sock"))
	}
	if err != nil {
		return nil, errors.Join(err, own.Remove())
	}
	go func() { _ = e.server.Serve(l) }() // until Close
	return e, nil
}

// longestDir leaves room for the rest of the socket's path, which has at most 107 bytes.
const longestDir = 60

// Host returns the address of the engine, as in DOCKER_HOST.
func (e *Engine) Host() string { return "unix://" + filepath.Join(e.scratch, "sock") }

// Environ returns environ with DOCKER_HOST set to this engine.
func (e *Engine) Environ(environ map[string]string) map[string]string {
	if e == nil {
		return environ
	}
	environ = maps.Clone(environ)
	environ["DOCKER_HOST"] = e.Host()
	return environ
}

// Name returns the name of the engine in messages. Without Apptainer, the engine is Podman or Docker.
func (e *Engine) Name(podman bool) string {
	switch {
	case e != nil:
		return "Apptainer"
	case podman:
		return "Podman"
	}
	return "Docker Engine"
}

// Close ends all programs of the engine and stops it.
func (e *Engine) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	boxes := slices.Collect(maps.Values(e.boxes))
	e.mu.Unlock()
	for _, b := range boxes {
		b.kill()
	}
	return errors.Join(e.server.Close(), e.own.Remove())
}

// hosts is /etc/hosts of containers: torch.distributed and ray look up the name of the machine.
const hosts = "127.0.0.1 localhost benchgraph\n::1 localhost\n"

// environ returns the environment of Apptainer. It passes on none of Apptainer's own variables: they could mount
// files or change the environment of containers.
func (e *Engine) environ() []string {
	all := []string{"APPTAINER_CONFIGDIR=" + filepath.Join(e.scratch, "config")}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG"} {
		if value, ok := e.options.Environ[name]; ok {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// answer handles a request: its value is sent as JSON; for nil, no content is sent.
type answer func(r *http.Request) (any, error)

func (f answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, err := f(r)
	if err != nil {
		refuse(w, err)
		return
	}
	if v == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if f, ok := errors.AsType[*images.Refusal](err); ok {
		status = f.Status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
}

// routes returns the handler of the engine's requests. It ignores the API version in a path.
func (e *Engine) routes() http.Handler {
	m := http.NewServeMux()
	for pattern, h := range map[string]answer{
		"GET /info":                    e.info,
		"GET /version":                 func(*http.Request) (any, error) { return types.Version{}, nil },
		"GET /images/json":             e.listImages,
		"GET /images/{id}/json":        e.inspectImage,
		"GET /images/{id}/history":     e.imageHistory,
		"POST /images/{id}/tag":        e.tagImage,
		"DELETE /images/{id}":          e.removeImage,
		"POST /commit":                 e.commit,
		"GET /containers/json":         e.list,
		"POST /containers/create":      e.create,
		"GET /containers/{id}/json":    e.inspect,
		"POST /containers/{id}/start":  e.start,
		"POST /containers/{id}/kill":   e.signal,
		"DELETE /containers/{id}":      e.remove,
		"POST /containers/{id}/exec":   e.createExec,
		"GET /exec/{id}/json":          e.inspectExec,
		"GET /networks":                func(*http.Request) (any, error) { return []any{}, nil },
		"POST /networks/create":        func(*http.Request) (any, error) { return map[string]string{"Id": "-"}, nil },
		"DELETE /networks/{id}":        func(*http.Request) (any, error) { return nil, nil },
		"PUT /containers/{id}/archive": func(*http.Request) (any, error) { return nil, images.Cannot(unmade) },
		"POST /build":                  func(*http.Request) (any, error) { return nil, images.Cannot(unmade) },
		"/": func(r *http.Request) (any, error) {
			return nil, images.Cannot("%s %s is not there", r.Method, r.URL.Path)
		},
	} {
		m.Handle(pattern, h)
	}
	m.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", apiVersion)
		w.Header().Set("Ostype", "linux")
	})
	m.HandleFunc("POST /images/create", e.createImage)
	m.HandleFunc("POST /containers/{id}/attach", e.attach)
	m.HandleFunc("POST /containers/{id}/wait", e.wait)
	m.HandleFunc("POST /exec/{id}/start", e.startExec)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if rest, ok := strings.CutPrefix(r.URL.Path, "/v"+apiVersion); ok {
			r.URL.Path, r.URL.RawPath = rest, ""
		}
		oneSegment(r.URL)
		m.ServeHTTP(w, r)
	})
}

// oneSegment escapes the name of an image, so that the name is one segment of the path.
func oneSegment(u *url.URL) {
	ref, ok := strings.CutPrefix(u.Path, "/images/")
	if !ok || !strings.Contains(ref, "/") && (ref == "json" || ref == "create") {
		return
	}
	end := ""
	if at := strings.LastIndex(ref, "/"); at >= 0 && slices.Contains([]string{"/json", "/history", "/tag"}, ref[at:]) {
		ref, end = ref[:at], ref[at:]
	}
	u.RawPath = "/images/" + url.PathEscape(ref) + end
}

const (
	apiVersion = "1.44"
	maxBody    = 64 << 30 // most bytes of a request, such as an image to import
	unmade     = "it changes no images. Make the image on a machine with Docker, push it, and begin with that " +
		"(from = \"REGISTRY/NAME@sha256:…\")"
)

// info describes the engine, or returns an error if the engine runs nothing on this machine.
func (e *Engine) info(*http.Request) (any, error) {
	version, err := e.about()
	if err != nil {
		return nil, err
	}
	var all unix.Sysinfo_t
	if err := unix.Sysinfo(&all); err != nil {
		return nil, err
	}
	i := system.Info{ServerVersion: version, DockerRootDir: e.options.Dir, OSType: "linux",
		Architecture: runtime.GOARCH, MemTotal: int64(all.Totalram) * int64(all.Unit), SwapLimit: true,
		SecurityOptions: []string{"name=seccomp,profile=benchgraph"}}
	if exists(nvidia) {
		i.Runtimes = map[string]system.RuntimeWithStatus{"nvidia": {Runtime: system.Runtime{Path: e.program}}}
	}
	return i, nil
}

// try finds out whether Apptainer starts containers on this machine: it starts a container with an empty root.
func (e *Engine) try() (version string, err error) {
	if os.Geteuid() == 0 {
		return "", images.Cannot("a container that root starts has root's rights. Run as a user")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	said, err := e.output(ctx, executor.Command{Argv: []string{e.program, "--version"}, Dir: "/", Env: e.environ()})
	if err != nil {
		return "", err
	}
	fields := strings.Fields(said + " unknown")
	b := newBox(e, "trial")
	b.image = &images.Image{}
	b.host.NetworkMode, b.config.Cmd = "none", []string{nothing}
	for _, dir := range []string{"root", "home"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			return "", err
		}
	}
	b.root = filepath.Join(b.dir, "root")
	if err := images.Furnish(b.root); err != nil {
		return "", err
	}
	cmd, err := b.command()
	if err != nil {
		return "", err
	}
	cmd.Argv[slices.Index(cmd.Argv, "-s")] = "-q" // -s would hide warnings
	if said, err = e.output(ctx, cmd); err != nil {
		return "", err
	}
	if strings.Contains(said, "seccomp") {
		return "", images.Cannot("it filters no system calls: %s", said)
	}
	if !strings.Contains(said, nothing) { // Apptainer names the missing program only after it has set up the container
		return "", images.Cannot("it starts no container: %s", said)
	}
	return fields[2], nil
}

// output runs a command on this machine to its end and returns its output.
func (e *Engine) output(ctx context.Context, cmd executor.Command) (string, error) {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_, err := executor.Run(ctx, e.options.Host, cmd)
	return strings.TrimSpace(said.String()), err
}

// nothing is a program that exists in no image.
const nothing = "/benchgraph-nothing"

// read decodes the body of a request.
func read(r *http.Request, v any) error {
	err := json.NewDecoder(r.Body).Decode(v)
	if err != nil && !errors.Is(err, io.EOF) {
		return images.Refused(http.StatusBadRequest, err.Error())
	}
	return nil
}
