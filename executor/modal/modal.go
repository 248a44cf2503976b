// Package modal runs jobs as sandboxes of Modal. Modal's client library is in a program of its own, benchgraph-modal,
// which package service is the inside of.
package modal

import (
	"strings"
	"time"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

// Program is the name of the program that speaks to Modal.
const Program = "benchgraph-modal"

// Asks are what all sandboxes have.
type Asks struct {
	App         string            `json:"app"`                    // of Modal; it is made if there is none
	Environment string            `json:"environment,omitempty"`  // of Modal; "": that of the user's profile
	Image       string            `json:"image"`                  // in a registry, by digest
	ImageSecret string            `json:"image_secret,omitempty"` // name of the secret with the login of the registry
	GPU         string            `json:"gpu,omitempty"`          // what a GPU is, such as H100
	Secrets     []string          `json:"secrets,omitempty"`      // names
	Volumes     map[string]string `json:"volumes,omitempty"`      // names, by the path at which each is mounted
	Cloud       string            `json:"cloud,omitempty"`
	Regions     []string          `json:"regions,omitempty"`
}

// LongestTime is the longest time that Modal lets a sandbox have.
const LongestTime = 24 * time.Hour

// Options say how Modal is spoken to.
type Options struct {
	Asks
	Beside string // the directory of benchgraph, in which the program is looked for before PATH
	// as NAME=value; the program gets HOME, the variables of Modal, and those for proxies and certificates
	Environ []string
	Told    func(string) // takes what the user is to be told; may be nil
}

// Open starts the program, and has Modal look up the app, the secrets and the volumes.
func Open(o Options) (*pipe.Program, error) {
	var environ []string
	for _, v := range o.Environ {
		name, _, _ := strings.Cut(v, "=")
		if name == "HOME" || strings.HasPrefix(name, "SSL_CERT_") || strings.HasPrefix(name, "MODAL_") ||
			strings.HasSuffix(strings.ToLower(name), "_proxy") {
			environ = append(environ, v)
		}
	}
	return pipe.OpenNamed(Program, o.Beside, job.PathOf(o.Environ),
		pipe.Options{Environ: environ, Settings: o.Asks, Told: o.Told})
}
