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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/job/poll"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
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
	batch, core rest.Interface
	namespace   string
	tolerations []corev1.Toleration

	jobs     *poll.Poll[entry]
	troubles job.Troubles

	mu       sync.Mutex
	machines machines // recent copy of the cluster's nodes
}

// answerTime limits one request to the API server.
const answerTime = 30 * time.Second

// Open reads the kubeconfig, and asks the API server whether the user may list the Jobs of the namespace.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	if o.Grace <= 0 {
		o.Grace = 20 * time.Second
	}
	config, namespace, err := configure(o.Context)
	if err != nil {
		return nil, err
	}
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	c := &Cluster{o: o, namespace: namespace, troubles: job.Troubles{Tell: o.Told}}
	c.jobs = poll.New(o.Every, c.list)
	if c.tolerations, err = tolerations(o.Tolerations); err != nil {
		return nil, err
	}
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	err = c.get("jobs").Param("limit", "1").Do(ctx).Into(&batchv1.JobList{})
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("kubernetes: the API server %s does not know the user of the kubeconfig: %s; log "+
			"in again", config.Host, words(err))
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("kubernetes: %s; have the user given the verbs create, get, list and delete for jobs, "+
			"create and delete for secrets, and get and list for pods and pods/log in the namespace %s", words(err),
			namespace)
	case err != nil:
		return nil, fmt.Errorf("kubernetes: the API server %s does not answer as one: %s; see to it that "+
			"kubectl get jobs works here", config.Host, words(err))
	}
	// For a namespace that does not exist, the list of Jobs is empty. A user who may not read the namespace gets the
	// error when a Job is created.
	err = c.core.Get().Resource("namespaces").Name(namespace).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("kubernetes: %s; %s", words(err), wrongNamespace)
	}
	return c, nil
}

const wrongNamespace = "correct namespace in the executor block, or have the namespace made"

// configure reads the kubeconfig as kubectl does; in a Pod without one, it uses the Pod's account.
func configure(context string) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loader.ClientConfig()
	if err == nil {
		namespace, _, err := loader.Namespace()
		return config, namespace, err
	}
	files := strings.Join(rules.GetLoadingPrecedence(), ", ")
	raw, broken := rules.Load()
	switch {
	case broken != nil:
		return nil, "", fmt.Errorf("kubernetes: the kubeconfig cannot be read: %s", words(broken))
	case len(raw.Clusters) == 0:
		return nil, "", fmt.Errorf("kubernetes: no kubeconfig names a cluster (%s); have the cluster's login write "+
			"one, or name its file in KUBECONFIG", files)
	case context != "" && raw.Contexts[context] == nil:
		return nil, "", fmt.Errorf("kubernetes: the kubeconfig (%s) has no context %q, but %s; correct context in the "+
			"executor block", files, context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	return nil, "", fmt.Errorf("kubernetes: the kubeconfig (%s) cannot be used: %s", files, words(err))
}

// connect makes the clients of the two API groups in use; the scheme has no types of other groups.
func (c *Cluster) connect(config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = "benchgraph"
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	for _, group := range []struct {
		version schema.GroupVersion
		path    string
		to      *rest.Interface
	}{{batchv1.SchemeGroupVersion, "/apis", &c.batch}, {corev1.SchemeGroupVersion, "/api", &c.core}} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath = &group.version, group.path
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return err
		}
		*group.to = client
	}
	return nil
}

func (c *Cluster) of(resource string) rest.Interface {
	if resource == "jobs" {
		return c.batch
	}
	return c.core
}

// get returns a request to read a resource of the namespace.
func (c *Cluster) get(resource string) *rest.Request {
	return c.of(resource).Get().Namespace(c.namespace).Resource(resource)
}

// words returns the message of a client's error as one line.
func words(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Message != "" {
		text = status.Status().Message
	}
	return job.Words(text)
}

// Temporary troubles.
const (
	silent = "kubernetes: the API server does not answer; benchgraph asks again and again"
	full   = "kubernetes: the namespace takes no more Jobs for now; benchgraph submits them when others have ended"
)

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
	ctx, stop := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %s", answerTime))
	defer stop()
	j := &batchv1.Job{}
	err := c.get("jobs").Name(name).Do(ctx).Into(j)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return j, err
}
