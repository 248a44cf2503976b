// Package kubernetes runs jobs as Jobs of a Kubernetes cluster. The client library of Kubernetes is in a program of its
// own, benchgraph-kubernetes, which package cluster is the inside of.
package kubernetes

import (
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

// Program is the name of the program that speaks to Kubernetes.
const Program = "benchgraph-kubernetes"

// Asks are what all Jobs have.
type Asks struct {
	Context        string            `json:"context,omitempty"`         // of the kubeconfig; "": its current one
	Namespace      string            `json:"namespace,omitempty"`       // "": that of the context
	Image          string            `json:"image"`                     // of the container
	NodeSelector   map[string]string `json:"node_selector,omitempty"`   // labels that a node must have
	Tolerations    []string          `json:"tolerations,omitempty"`     // taints: KEY=VALUE:EFFECT
	Queue          string            `json:"queue,omitempty"`           // name of a local queue of Kueue
	ServiceAccount string            `json:"service_account,omitempty"` // "": the namespace's default
	PullSecret     string            `json:"pull_secret,omitempty"`     // a Secret with the login of the registry
	EnvFrom        []string          `json:"env_from,omitempty"`        // names of Secrets whose entries are variables
	Volumes        map[string]string `json:"volumes,omitempty"`         // claims, by the path at which each is mounted
}

// Options say how a cluster is spoken to.
type Options struct {
	Asks
	Beside  string       // the directory of benchgraph, in which the program is looked for before PATH
	Environ []string     // as NAME=value, of the program: KUBECONFIG, HOME and those of login helpers count
	Told    func(string) // takes what the user is to be told; may be nil
}

// Open starts the program, which reads the kubeconfig and asks the API server whether the user may list Jobs.
func Open(o Options) (*pipe.Program, error) {
	return pipe.OpenNamed(Program, o.Beside, job.PathOf(o.Environ),
		pipe.Options{Environ: o.Environ, Settings: o.Asks, Told: o.Told})
}

// IsToleration reports whether a text is a taint as kubectl writes it: KEY or KEY=VALUE, with :EFFECT for one effect.
func IsToleration(text string) bool {
	taint, effect, one := strings.Cut(text, ":")
	key, _, _ := strings.Cut(taint, "=")
	return key != "" && (!one || slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect))
}
