// Package api connects benchgraph to the API server of a Kubernetes cluster, for one namespace.
package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
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
)

// answerTime limits one request.
const answerTime = 30 * time.Second

// Within returns a context that ends when one request has lasted too long.
func Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %s", answerTime))
}

// WrongNamespace is the remedy where a namespace does not exist.
const WrongNamespace = "correct namespace in the executor block, or have the namespace made"

// Server is an API server. It is safe for concurrent use.
type Server struct {
	Namespace string
	address   string
	context   string                                    // of the kubeconfig; "": the account of the Pod is used
	clients   atomic.Pointer[map[string]rest.Interface] // by API group
}

// New reads the kubeconfig as kubectl does, or, in a Pod without one, uses the Pod's account. context and namespace may
// be "": then those of the kubeconfig count.
func New(context, namespace string) (*Server, error) {
	config, context, of, err := configure(context)
	if err != nil {
		return nil, err
	}
	s := &Server{Namespace: namespace, address: config.Host, context: context}
	if namespace == "" {
		s.Namespace = of
	}
	return s, s.connect(config)
}

// Login reads the kubeconfig again: after a login of the user, it has another token or certificate.
func (s *Server) Login() {
	config, _, _, err := configure(s.context)
	if err == nil && config.Host == s.address {
		_ = s.connect(config) // the old clients stay
	}
}

// configure also returns the context and the namespace in use: a later reading must lead to the same cluster, even if
// another context is the current one by then.
func configure(context string) (config *rest.Config, used, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
	if config, err = loader.ClientConfig(); err == nil {
		if all, err := loader.RawConfig(); err == nil && context == "" {
			context = all.CurrentContext
		}
		namespace, _, err = loader.Namespace()
		return config, context, namespace, err
	}
	files := strings.Join(rules.GetLoadingPrecedence(), ", ")
	raw, broken := rules.Load()
	switch {
	case broken != nil:
		return nil, "", "", fmt.Errorf("the kubeconfig cannot be read: %s", Words(broken))
	case len(raw.Clusters) == 0:
		return nil, "", "", fmt.Errorf("no kubeconfig names a cluster (%s); have the cluster's login write "+
			"one, or name its file in KUBECONFIG", files)
	case context != "" && raw.Contexts[context] == nil:
		return nil, "", "", fmt.Errorf("the kubeconfig (%s) has no context %q, but %s; correct context in the "+
			"executor block", files, context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	return nil, "", "", fmt.Errorf("the kubeconfig (%s) cannot be used: %s", files, Words(err))
}

// connect makes the clients of the two API groups in use; the scheme has no types of other groups.
func (s *Server) connect(config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = "benchgraph"
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	clients := map[string]rest.Interface{}
	for path, version := range map[string]schema.GroupVersion{"/apis": batchv1.SchemeGroupVersion,
		"/api": corev1.SchemeGroupVersion} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath = &version, path
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return err
		}
		clients[version.Group] = client
	}
	s.clients.Store(&clients)
	return nil
}

// Of returns the client for a resource.
func (s *Server) Of(resource string) rest.Interface {
	if resource == "jobs" {
		return (*s.clients.Load())[batchv1.GroupName]
	}
	return (*s.clients.Load())[corev1.GroupName]
}

// To returns a request about a resource of the namespace, such as GET of pods.
func (s *Server) To(method, resource string) *rest.Request {
	return s.Of(resource).Verb(method).Namespace(s.Namespace).Resource(resource)
}

// Words returns the message of a client's error as one line.
func Words(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Message != "" {
		text = status.Status().Message
	}
	return job.Words(text)
}

// Passes reports whether the same request may succeed later. After such an error, the request may still have had its
// effect.
func Passes(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // error of the connection
	}
	code := int(status.Status().Code)
	return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusUnauthorized ||
		code == http.StatusConflict || code >= http.StatusInternalServerError
}
