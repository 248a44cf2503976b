// Package cluster is the implementation of benchgraph-kubernetes: it submits jobs as Jobs of a Kubernetes cluster,
// each with one Pod, and follows them to their ends. Kubernetes' status of a Job tells when the Job no longer runs
// and why it can never run; it does not tell whether the job made its result.
//
// No conclusion about a Job follows from an API server that does not answer.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/poll"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster/api"
)

// name is the scheduler's name in messages.
const name = "Kubernetes"

// Options are the settings of a cluster. The kubeconfig is found as by kubectl, in the environment of the process.
type Options struct {
	kubernetes.Asks
	// between two readings of the Jobs; 0: a twentieth of the age of the youngest wait, between 1 s and 30 s
	Every time.Duration
	// how long a state without progress may last; longer if it may still change; 0: 20 s
	Grace time.Duration
	// called once when the cluster stops answering or accepting Jobs, until that is over; may be nil
	Told func(message string)
}

// Cluster is a namespace of a Kubernetes cluster. It is safe for concurrent use.
type Cluster struct {
	o           Options
	api         *api.Server
	tolerations []corev1.Toleration

	jobs     *poll.Poll[entry]
	troubles job.Troubles

	mu       sync.Mutex
	machines machines // recent copy of the cluster's nodes
}

// Open reads the kubeconfig, and asks the API server whether jobs can be submitted and followed.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	c := &Cluster{o: o, troubles: job.Troubles{Tell: o.Told}}
	c.jobs = poll.New(o.Every, c.list)
	var err error
	if c.tolerations, err = tolerations(o.Tolerations); err != nil {
		return nil, err
	}
	if c.api, err = api.New(o.Context, o.Namespace); err == nil {
		err = c.api.Check(ctx, o.Queue)
	}
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return c, nil
}

// Temporary troubles.
const (
	silent = "kubernetes: the API server does not answer; benchgraph asks again and again"
	failed = "kubernetes: the API server cannot do what it is asked; benchgraph asks again and again"
	logout = "kubernetes: the login of the kubeconfig is not valid any more; log in again, then benchgraph goes on"
	denied = "kubernetes: the user of the kubeconfig lacks a right; have the user given it, then benchgraph goes on"
	full   = "kubernetes: the namespace takes no more Jobs for now; benchgraph submits them when others have ended"
	// A Pod on a node that does not answer keeps its Job.
	leaving = "kubernetes: an earlier Job is still being deleted; benchgraph submits the next one when it is gone"
)

// has tells the user about an error after which the same request may succeed later. After a login, the kubeconfig
// has another token or certificate.
func (c *Cluster) has(err error) {
	trouble := silent
	switch {
	case apierrors.IsUnauthorized(err), strings.Contains(err.Error(), ": getting credentials: "): // by a login helper
		trouble = logout
		c.api.Login()
	case apierrors.IsForbidden(err):
		trouble = denied
	case errors.As(err, new(apierrors.APIStatus)):
		trouble = failed
	}
	c.troubles.Has(trouble, api.Words(err))
}

// answered ends the troubles of an API server that answers.
func (c *Cluster) answered() {
	for _, trouble := range []string{silent, failed, logout, denied} {
		c.troubles.Over(trouble)
	}
}

// isName reports whether a text can be the name of a job, see idOf.
func isName(text string) bool {
	_, uid, _ := strings.Cut(text, ".")
	return uid != ""
}

// Find looks for a queued or running Job with a key.
func (c *Cluster) Find(ctx context.Context, key string) (id job.ID, found bool, err error) {
	j, err := c.read(ctx, nameOf(key))
	if err != nil || j == nil || j.Annotations[keyAnnotation] != key || over(j) {
		return "", false, err
	}
	return idOf(j), true, nil
}

// read returns the Job of a name; nil if there is none.
func (c *Cluster) read(ctx context.Context, name string) (*batchv1.Job, error) {
	ctx, stop := api.Within(ctx)
	defer stop()
	j := &batchv1.Job{}
	err := c.api.To("GET", "jobs").Name(name).Do(ctx).Into(j)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return j, err
}
