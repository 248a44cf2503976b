package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check asks whether jobs can be submitted and followed: whether the user has the rights, and whether the namespace
// and the queue of Kueue exist. queue may be "".
func (s *Server) Check(ctx context.Context, queue string) error {
	ctx, stop := Within(ctx)
	defer stop()
	err := s.To("GET", "jobs").Param("limit", "1").Do(ctx).Into(&batchv1.JobList{})
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not know the user of the kubeconfig: %s; log in again", s.address,
			Words(err))
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("the API server %s does not answer as one: %s; see to it that kubectl get jobs works here",
			s.address, Words(err))
	}
	if lacks := s.lacks(ctx); len(lacks) > 0 {
		return fmt.Errorf("the user of the kubeconfig may not %s in the namespace %s; have the user given "+
			"these rights",
			strings.Join(lacks, "; "), s.Namespace)
	}
	if err != nil {
		return fmt.Errorf("%s; have the user given that right", Words(err))
	}
	// For a namespace that does not exist, the list of Jobs is empty. A user who may not read the namespace gets the
	// error when a Job is created.
	err = s.Of("namespaces").Get().Resource("namespaces").Name(s.Namespace).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s; %s", Words(err), WrongNamespace)
	}
	return s.queued(ctx, queue)
}

// rights are the verbs that benchgraph needs, by resource.
var rights = map[string][]string{
	"jobs": {"create", "get", "list", "delete"}, "secrets": {"create", "delete"}, "pods": {"list"}, "pods/log": {"get"},
}

// lacks returns the verbs that the user lacks, with their resources. An API server that does not tell counts as one
// that allows all.
func (s *Server) lacks(ctx context.Context) (all []string) {
	var asked sync.WaitGroup
	var mu sync.Mutex
	lacking := map[string][]string{}
	for name, verbs := range rights {
		resource, sub, _ := strings.Cut(name, "/")
		for _, verb := range verbs {
			asked.Go(func() {
				if s.allowed(ctx, authorizationv1.ResourceAttributes{Namespace: s.Namespace, Verb: verb,
					Group: s.Of(resource).APIVersion().Group, Resource: resource, Subresource: sub}) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				lacking[name] = append(lacking[name], verb)
			})
		}
	}
	asked.Wait()
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		slices.Sort(lacking[name])
		all = append(all, strings.Join(lacking[name], ", ")+" "+name)
	}
	return all
}

// allowed reports whether the user has a right.
func (s *Server) allowed(ctx context.Context, right authorizationv1.ResourceAttributes) bool {
	var review authorizationv1.SelfSubjectAccessReview
	review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SelfSubjectAccessReview"
	review.Spec.ResourceAttributes = &right
	body, err := json.Marshal(review)
	if err == nil {
		body, err = s.Of("").Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
			SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
	}
	return err != nil || json.Unmarshal(body, &review) != nil || review.Status.Allowed
}

// queued returns an error if Kueue is there, but not the queue of the executor: Jobs would wait in that queue for ever.
func (s *Server) queued(ctx context.Context, queue string) error {
	var kueue metav1.APIGroup
	text, err := s.Of("").Get().AbsPath("/apis/kueue.x-k8s.io").DoRaw(ctx)
	if queue == "" || err != nil || json.Unmarshal(text, &kueue) != nil {
		return nil
	}
	err = s.Of("").Get().AbsPath("/apis", kueue.PreferredVersion.GroupVersion).Namespace(s.Namespace).
		Resource("localqueues").Name(queue).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s in the namespace %s; correct queue in the executor block, or have the queue made",
			Words(err), s.Namespace)
	}
	return nil
}
