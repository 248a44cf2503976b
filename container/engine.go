// Package container is a client of a container engine through the Docker Engine API. Podman's compatible socket
// works, too.
//
// The package deals with images, containers and networks, not with nodes. Everything that it creates has labels,
// which distinguish the leftovers of a dead benchgraph from other people's property.
package container

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/benchgraph/benchgraph/container/endpoint"
	"github.com/benchgraph/benchgraph/container/stream"
)

// Labels of everything that benchgraph makes.
const (
	labelPrefix = "io.benchgraph."

	LabelKey   = labelPrefix + "key"   // of an image: chain key
	LabelNode  = labelPrefix + "node"  // address of the node for which it was made
	LabelState = labelPrefix + "state" // of containers and networks: the state directory of the benchgraph that made it
	// of containers and networks: the process that made it, as boot ID, PID namespace, PID and start time
	LabelOwner = labelPrefix + "owner"
)

// api is the engine's client, named here so that other files need not import it.
type api = client.Client

// Options are the settings of an Engine.
type Options struct {
	// DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CERT_PATH, DOCKER_API_VERSION, DOCKER_CONFIG, HOME
	Environ map[string]string
	State   string // the caller's state directory; written into labels

	Patience time.Duration // for answers of the engine (0: 2 min) and of a registry (0: 30 s)
	Wait     time.Duration // longest wait of AwaitBack
	Away     func(error)   // called with the reason when AwaitBack begins to wait, once for all waiters; may be nil
	Pause    time.Duration // before the second attempt to pull an image, doubled before each further one; 0: 1 s
}

// Engine is a container engine. Open makes no request; the first call does.
type Engine struct {
	options Options
	host    string
	connect func() (*api, error)
	away    atomic.Bool            // Options.Away was called and the engine has not been back since
	root    atomic.Pointer[string] // the engine's directory of images, once asked for
}

// Open returns an Engine. An error in the configuration is returned by the first call.
func Open(o Options) *Engine {
	at, err := endpoint.Find(o.Environ)
	e := &Engine{options: o, host: at.Host}
	if e.connect = func() (*api, error) { return nil, err }; err != nil {
		return e
	}
	e.connect = sync.OnceValues(func() (*api, error) {
		// Each request uses a new connection: an old connection to a stopping engine would still be answered.
		transport := &http.Transport{DisableKeepAlives: true}
		plain := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
		options := []client.Opt{client.WithHTTPClient(plain), client.WithHost(at.Host),
			client.WithAPIVersionNegotiation(), client.WithVersion(o.Environ["DOCKER_API_VERSION"])}
		if at.TLS() {
			options = append(options, client.WithTLSClientConfig(at.CA, at.Certificate, at.Key))
		}
		a, err := client.NewClientWithOpts(options...)
		if transport.DialContext != nil { // set by WithHost
			transport.DialContext = listening(transport.DialContext)
		}
		return a, err
	})
	return e
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// listening lets the client read the answer of an engine that closed the connection before it had read the whole
// request.
func listening(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d(ctx, network, address)
		if whole, ok := c.(halves); ok {
			c = listener{whole}
		}
		return c, err
	}
}

// halves is a connection whose directions can be closed separately.
type halves interface {
	net.Conn
	CloseWrite() error
}

type listener struct{ halves }

// Write gives the answer time to arrive before the client gives up because of the error.
func (l listener) Write(b []byte) (int, error) {
	n, err := l.halves.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		time.Sleep(100 * time.Millisecond)
	}
	return n, err
}

// Host returns the address of the engine, such as "unix:///var/run/docker.sock".
func (e *Engine) Host() string { return e.host }

// State returns the state directory in the engine's options.
func (e *Engine) State() string { return e.options.State }

// patience returns how long the engine may take to answer a request.
func (e *Engine) patience() time.Duration { return cmp.Or(e.options.Patience, 2*time.Minute) }

// call makes a short request and explains its error.
func call[T any](ctx context.Context, e *Engine, doing string, f func(context.Context, *api) (T, error)) (T, error) {
	a, err := e.connect()
	if err != nil {
		var none T
		return none, &Unavailable{e.Host(), err.Error(), endpoint.Remedy}
	}
	limited, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	v, err := f(limited, a)
	return v, e.explain(ctx, doing, err)
}

// long is call for requests of any length. Meanwhile it pings the engine regularly.
func long[T any](ctx context.Context, e *Engine, doing string, f func(context.Context, *api) (T, error)) (T, error) {
	a, err := e.connect()
	if err != nil {
		var none T
		return none, &Unavailable{e.Host(), err.Error(), endpoint.Remedy}
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go e.watch(watched, cancel, func() error { return e.Ping(watched) })
	v, err := f(watched, a)
	return v, e.explain(watched, doing, err)
}

// watch runs probe regularly until ctx ends. When probe fails, it calls cancel with the error.
func (e *Engine) watch(ctx context.Context, cancel context.CancelCauseFunc, probe func() error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(e.patience() / 4):
		}
		if err := probe(); err != nil {
			cancel(err)
		}
	}
}

// inspectImage inspects an image. containerd's store reports only the packed size, unless asked for the manifests,
// which include the unpacked size.
func inspectImage(ctx context.Context, a *api, ref string) (image.InspectResponse, error) {
	r, err := a.ImageInspect(ctx, ref)
	switch {
	case err != nil || r.Descriptor == nil:
		return r, err
	case r.Os == "": // containerd's store cannot read the configuration, but runs the image
		return r, errors.New("the engine does not say for which platform the image is, nor as whom it runs")
	}
	return a.ImageInspect(ctx, ref, client.ImageInspectWithManifests(true))
}

// Ping returns *Unavailable if the engine does not answer: there is no listener, or the listener closes connections
// or answers with its own errors.
func (e *Engine) Ping(ctx context.Context) error {
	_, err := call(ctx, e, "ask the container engine whether it is there",
		func(ctx context.Context, a *api) (types.Ping, error) {
			return a.Ping(ctx)
		})
	return err
}

// AwaitBack waits while the engine is away, at most for Options.Wait, and returns when the engine answers. It returns
// no error: the following request does.
func (e *Engine) AwaitBack(ctx context.Context) {
	if e == nil || e.options.Wait == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.Wait)
	defer cancel()
	for ctx.Err() == nil {
		err := e.Ping(ctx)
		_, away := errors.AsType[*Unavailable](err)
		if ctx.Err() == nil && e.away.CompareAndSwap(!away, away) && away && e.options.Away != nil {
			e.options.Away(err)
		}
		if !away {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(awayPause):
		}
	}
}

// awayPause is the interval at which an absent engine is pinged.
const awayPause = time.Second

// connectionFailed reports whether the request did not reach the engine, or its answer did not arrive.
func connectionFailed(err error) bool { return client.IsErrConnectionFailed(err) }

// Info is an engine's description of itself.
type Info struct {
	Version   string // of the engine
	API       string // negotiated version
	Root      string // directory of images; empty: not on this machine
	GPUs      bool   // NVIDIA's runtime is configured, see CheckGPUs
	SwapLimit bool
	Seccomp   bool  // containers have a system call filter unless their own configuration removes it
	Memory    int64 // bytes of memory of the engine's machine

	UsersMapped bool // users in containers are mapped to other users of the machine (userns-remap)
	Logs        bool // it has the log driver of stream.LogConfig
}

// security reports whether an engine with these security options filters the system calls of containers
// ("name=seccomp,profile=builtin"), and whether it maps users (userns-remap).
func security(options []string) (filters, mapsUsers bool) {
	all, _ := system.DecodeSecurityOptions(options)
	for _, o := range all {
		filters = filters || o.Name == "seccomp" &&
			!slices.Contains(o.Options, system.KeyValue{Key: "profile", Value: "unconfined"})
		mapsUsers = mapsUsers || o.Name == "userns"
	}
	return filters, mapsUsers
}

// Info returns the engine's description. It returns *Unavailable if the engine does not answer.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	return call(ctx, e, "ask the container engine who it is", func(ctx context.Context, a *api) (Info, error) {
		info, err := a.Info(ctx)
		filters, mapsUsers := security(info.SecurityOptions)
		return Info{
			Version: info.ServerVersion, API: a.ClientVersion(), Root: info.DockerRootDir,
			Memory: info.MemTotal, SwapLimit: info.SwapLimit, GPUs: info.Runtimes["nvidia"].Path != "",
			Seccomp: filters, UsersMapped: mapsUsers,
			Logs: slices.Contains(info.Plugins.Log, stream.LogConfig().Type),
		}, err
	})
}
