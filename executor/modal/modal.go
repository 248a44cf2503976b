// Package modal runs jobs as sandboxes of Modal. Modal's client library is in a separate program, benchgraph-modal,
// whose implementation is package service.
package modal

import (
	"context"
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

// Program is the name of the program that speaks to Modal.
const Program = "benchgraph-modal"

// Asks are properties of all sandboxes.
type Asks struct {
	App         string            `json:"app"`                    // of Modal; created if it does not exist
	Environment string            `json:"environment,omitempty"`  // of Modal; "": the environment of the user's profile
	Image       string            `json:"image"`                  // in a registry, by digest
	ImageSecret string            `json:"image_secret,omitempty"` // name of the secret with the login of the registry
	GPU         string            `json:"gpu,omitempty"`          // type of GPU, such as H100
	Secrets     []string          `json:"secrets,omitempty"`      // names
	Volumes     map[string]string `json:"volumes,omitempty"`      // names, by the path at which each is mounted
	Cloud       string            `json:"cloud,omitempty"`
	Regions     []string          `json:"regions,omitempty"`
}

// LongestTime is the longest time limit that Modal allows for a sandbox.
const LongestTime = 24 * time.Hour

// Options are the settings of Modal.
type Options struct {
	Asks
	Beside string // directory of benchgraph, where the program is looked up before PATH
	// as NAME=value; the program gets HOME, Modal's variables, and those for proxies and certificates
	Environ []string
	Told    func(string) // called with messages for the user; may be nil
}

// Open starts the program and checks that the app, the secrets and the volumes exist.
func Open(ctx context.Context, o Options) (*pipe.Program, error) {
	var environ []string
	for _, v := range o.Environ {
		name, _, _ := strings.Cut(v, "=")
		if name == "HOME" || strings.HasPrefix(name, "SSL_CERT_") || strings.HasPrefix(name, "MODAL_") ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			environ = append(environ, v)
		}
	}
	return pipe.OpenNamed(ctx, Program, o.Beside, job.PathOf(o.Environ),
		pipe.Options{Environ: environ, Settings: o.Asks, Told: o.Told})
}
