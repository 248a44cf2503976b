// Package docker speaks to a container engine through the Docker Engine API; Podman's compatible socket works, too.
//
// It knows images, containers and networks, and nothing of nodes. Everything that it makes carries labels, by which it is
// found again, and by which what a dead benchgraph left is told from what belongs to somebody else.
package docker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/docker/docker/client"
)

// The labels of what benchgraph makes.
const (
	labelPrefix = "io.benchgraph."

	LabelKey   = labelPrefix + "key"   // of an image: SHA-256 of what it was made from
	LabelNode  = labelPrefix + "node"  // address of the node that it was made for
	LabelState = labelPrefix + "state" // of containers and networks: the state directory of the benchgraph that made it
	LabelOwner = labelPrefix + "owner" // of containers and networks: the process that made it, as boot ID, PID namespace, PID and start time
)

// Options say which engine is meant and on whose behalf.
type Options struct {
	Environ map[string]string // DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, DOCKER_API_VERSION, DOCKER_CONFIG, HOME
	State   string            // directory of the caller's state; goes into labels

	Patience time.Duration // for one answer of a registry; 0: 30 s
	Pause    time.Duration // before the second attempt to bring an image, doubled before each further one; 0: 1 s
}

// Engine is one container engine. Opening it reaches nothing: the first call does.
type Engine struct {
	options Options
	connect func() (*client.Client, error)
}

// Open takes note of an engine.
func Open(o Options) *Engine {
	e := &Engine{options: o}
	e.connect = sync.OnceValues(func() (*client.Client, error) {
		options := []client.Opt{client.WithHost(e.Host()), client.WithAPIVersionNegotiation()}
		if v := o.Environ["DOCKER_API_VERSION"]; v != "" {
			options = append(options, client.WithVersion(v))
		}
		if dir := o.Environ["DOCKER_CERT_PATH"]; dir != "" {
			options = append(options, client.WithTLSClientConfig(dir+"/ca.pem", dir+"/cert.pem", dir+"/key.pem"))
		}
		return client.NewClientWithOpts(options...)
	})
	return e
}

// Host returns where the engine is, such as "unix:///var/run/docker.sock".
func (e *Engine) Host() string {
	if host := e.options.Environ["DOCKER_HOST"]; host != "" {
		return host
	}
	return client.DefaultDockerHost
}

// State returns the state directory that it was opened with.
func (e *Engine) State() string { return e.options.State }

// Unavailable is the error for an engine that does not answer.
type Unavailable struct {
	Host   string
	Reason string
	Remedy string
}

func (e *Unavailable) Error() string {
	return fmt.Sprintf("no container engine at %s: %s; %s", e.Host, e.Reason, e.Remedy)
}

// Info is what an engine says of itself.
type Info struct {
	Version   string // of the engine
	API       string // that was agreed on
	Root      string // directory in which it keeps images; empty: not on this machine
	OS        string
	Arch      string
	BuildKit  bool
	GPUs      bool // it can give containers NVIDIA devices
	SwapLimit bool
}

// Info asks the engine who it is. An engine that does not answer is *Unavailable.
func (e *Engine) Info(ctx context.Context) (Info, error) {
	api, err := e.connect()
	if err != nil {
		return Info{}, err
	}
	info, err := api.Info(ctx)
	if err != nil {
		return Info{}, err
	}
	return Info{Version: info.ServerVersion, API: api.ClientVersion(), Root: info.DockerRootDir, OS: info.OSType, Arch: info.Architecture}, nil
}
