// Package container is a client of a container engine through the Docker Engine API; Podman's compatible socket works,
// too.
//
// It knows images, containers and networks, and nothing of nodes. Everything that it creates has labels. The labels
// tell the leftovers of a dead benchgraph from the property of others.
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

// The labels of what benchgraph makes.
const (
	labelPrefix = "io.benchgraph."

	LabelKey   = labelPrefix + "key"   // of an image: SHA-256 of what it was made from
	LabelNode  = labelPrefix + "node"  // address of the node that it was made for
	LabelState = labelPrefix + "state" // of containers and networks: the state directory of the benchgraph that made it
	// of containers and networks: the process that made it, as boot ID, PID namespace, PID and start time
	LabelOwner = labelPrefix + "owner"
)

// api is the engine's client, so that other files need not import it.
type api = client.Client

// Options say which engine is meant and on whose behalf.
type Options struct {
	// DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CERT_PATH, DOCKER_API_VERSION, DOCKER_CONFIG, HOME
	Environ map[string]string
	State   string // directory of the caller's state; goes into labels

	Patience time.Duration // for what takes an engine (0: 2 min) or a registry (0: 30 s) a moment to answer
	Wait     time.Duration // of AwaitBack, at most
	Away     func(error)   // told why when AwaitBack begins to wait, once for all who wait; may be nil
	Pause    time.Duration // before the second attempt to bring an image, doubled before each further one; 0: 1 s
}

// Engine is one container engine. Opening it reaches nothing: the first call does.
type Engine struct {
	options Options
	host    string
	connect func() (*api, error)
	away    atomic.Bool            // while Options.Away was told
	root    atomic.Pointer[string] // directory in which it keeps images, once it was asked
}

// Open takes note of an engine.
func Open(o Options) *Engine {
	at, err := endpoint.Find(o.Environ)
	e := &Engine{options: o, host: at.Host}
	if e.connect = func() (*api, error) { return nil, err }; err != nil {
		return e
	}
	e.connect = sync.OnceValues(func() (*api, error) {
		// Each request uses a connection of its own: a connection that was left open to a stopping engine still
		// answers.
		transport := &http.Transport{DisableKeepAlives: true}
		plain := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
		options := []client.Opt{client.WithHTTPClient(plain), client.WithHost(at.Host),
			client.WithAPIVersionNegotiation(), client.WithVersion(o.Environ["DOCKER_API_VERSION"])}
		if at.TLS() {
			options = append(options, client.WithTLSClientConfig(at.CA, at.Certificate, at.Key))
		}
		a, err := client.NewClientWithOpts(options...)
		if transport.DialContext != nil { // which the host has set
			transport.DialContext = listening(transport.DialContext)
		}
		return a, err
	})
	return e
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// listening lets the client read the answer of an engine that closed the connection before all was sent.
func listening(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d(ctx, network, address)
		if whole, ok := c.(halves); ok {
			c = listener{whole}
		}
		return c, err
	}
}

// halves is a connection whose directions are closed one by one.
type halves interface {
	net.Conn
	CloseWrite() error
}

type listener struct{ halves }

// Write lets the answer arrive before the client gives up the request because of an error.
func (l listener) Write(b []byte) (int, error) {
	n, err := l.halves.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		time.Sleep(100 * time.Millisecond)
	}
	return n, err
}

// Host returns where the engine is, such as "unix:///var/run/docker.sock".
func (e *Engine) Host() string { return e.host }

// State returns the state directory that it was opened with.
func (e *Engine) State() string { return e.options.State }

// patience is how long the engine may take to answer a request that is no stream.
func (e *Engine) patience() time.Duration { return cmp.Or(e.options.Patience, 2*time.Minute) }

// call asks the engine for something that takes a moment, and explains what goes wrong.
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

// long is call for requests that may take any time. Meanwhile, the engine is pinged now and then.
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

// watch calls cancel with the error of probe as soon as there is one, until ctx ends.
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

// inspectImage asks for an image. The size that containerd's store tells is that of what is packed; with its manifests,
// it tells that of what it has unpacked, too.
func inspectImage(ctx context.Context, a *api, ref string) (image.InspectResponse, error) {
	r, err := a.ImageInspect(ctx, ref)
	switch {
	case err != nil || r.Descriptor == nil:
		return r, err
	case r.Os == "": // of what containerd's store cannot read, and runs all the same
		return r, errors.New("the engine does not say for which platform the image is, nor as whom it runs")
	}
	return a.ImageInspect(ctx, ref, client.ImageInspectWithManifests(true))
}

// Ping reports whether the engine answers. The error is *Unavailable if it does not: nothing listens there, or what
// listens closes connections, or answers with errors of its own.
func (e *Engine) Ping(ctx context.Context) error {
	_, err := call(ctx, e, "ask the container engine whether it is there",
		func(ctx context.Context, a *api) (types.Ping, error) {
			return a.Ping(ctx)
		})
	return err
}

// AwaitBack waits while the engine is away, for Options.Wait at most, and returns when the engine answers. AwaitBack
// reports no error: the request that follows does.
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

// awayPause is how often an engine that is away is asked again.
const awayPause = time.Second

// connectionFailed says whether the request did not reach the engine, or its answer did not reach us.
func connectionFailed(err error) bool { return client.IsErrConnectionFailed(err) }

// Info is what an engine says of itself.
type Info struct {
	Version   string // of the engine
	API       string // that was agreed on
	Root      string // directory in which it keeps images; empty: not on this machine
	GPUs      bool   // its configuration has NVIDIA's runtime, see CheckGPUs
	SwapLimit bool
	Seccomp   bool  // containers have a filter of system calls, which nothing but their own configuration takes away
	Memory    int64 // bytes that the engine's machine has

	UsersMapped bool // users in containers are other users of the machine (userns-remap)
	Logs        bool // it keeps logs as stream.LogConfig asks for them
}

// security says whether an engine with these options filters the system calls of containers, and whether it was started
// with userns-remap. Engines say the former as "name=seccomp,profile=builtin".
func security(options []string) (filters, mapsUsers bool) {
	all, _ := system.DecodeSecurityOptions(options)
	for _, o := range all {
		filters = filters || o.Name == "seccomp" &&
			!slices.Contains(o.Options, system.KeyValue{Key: "profile", Value: "unconfined"})
		mapsUsers = mapsUsers || o.Name == "userns"
	}
	return filters, mapsUsers
}

// Info asks the engine who it is. An engine that does not answer is *Unavailable.
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
