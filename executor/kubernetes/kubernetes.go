// Package kubernetes runs jobs as Jobs of a Kubernetes cluster. The Kubernetes client library is in a separate
// program, benchgraph-kubernetes, whose implementation is package cluster.
package kubernetes

import (
	"context"
	"slices"
	"strings"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/pipe"
)

// Program is the name of the program that speaks to Kubernetes.
const Program = "benchgraph-kubernetes"

// Asks are properties of all Jobs.
type Asks struct {
	Context        string            `json:"context,omitempty"`         // of the kubeconfig; "": the current one
	Namespace      string            `json:"namespace,omitempty"`       // "": the namespace of the context
	Image          string            `json:"image"`                     // of the container
	NodeSelector   map[string]string `json:"node_selector,omitempty"`   // labels that a node must have
	Tolerations    []string          `json:"tolerations,omitempty"`     // taints: KEY=VALUE:EFFECT
	Queue          string            `json:"queue,omitempty"`           // name of a local queue of Kueue
	ServiceAccount string            `json:"service_account,omitempty"` // "": the namespace's default
	PullSecret     string            `json:"pull_secret,omitempty"`     // a Secret with the login of the registry
	EnvFrom        []string          `json:"env_from,omitempty"`        // names of Secrets whose entries are variables
	Volumes        map[string]string `json:"volumes,omitempty"`         // claims, by the path at which each is mounted
}

// Options are the settings of a cluster.
type Options struct {
	Asks
	Beside  string       // directory of benchgraph, where the program is looked up before PATH
	Environ []string     // of the program, as NAME=value: KUBECONFIG, HOME and those of login helpers are used
	Told    func(string) // called with messages for the user; may be nil
}

// Open starts the program, which reads the kubeconfig and checks that the user may list Jobs.
func Open(ctx context.Context, o Options) (*pipe.Program, error) {
	return pipe.OpenNamed(ctx, Program, o.Beside, job.PathOf(o.Environ),
		pipe.Options{Environ: o.Environ, Settings: o.Asks, Told: o.Told})
}

// IsToleration reports whether a text is a taint in kubectl's form: KEY or KEY=VALUE, with :EFFECT for only one
// effect.
func IsToleration(text string) bool {
	taint, effect, one := strings.Cut(text, ":")
	key, _, _ := strings.Cut(taint, "=")
	return key != "" && (!one || slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect))
}
