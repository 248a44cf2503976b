package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/kubernetes/cluster/api"
)

// lastWord is how long a running request may continue after ctx has ended: its answer tells whether there is a Job.
const lastWord = 15 * time.Second

// Submit submits a job unless one with the same key is queued or running; then found is true. The name of a Job is
// derived from the key: of two simultaneous submissions, one creates the Job and the other finds it. If an answer is
// lost, Submit looks for the Job before it creates it again, until ctx ends. It returns Refused if the cluster
// refuses the job, and Unanswered if ctx ends while it is unknown whether the Job exists.
func (c *Cluster) Submit(ctx context.Context, of job.Job) (id job.ID, found bool, err error) {
	if !job.IsKey(of.Key) {
		return "", false, fmt.Errorf("job %q: its key %q is to be made of letters, digits and . _ : -, %d at most",
			of.Name, of.Key, job.MaxKey)
	}
	mark := make([]byte, 5)
	_, _ = rand.Read(mark) // never fails
	s := submission{c: c, job: of, mark: hex.EncodeToString(mark)}
	for try := 0; ; try++ {
		j, err := s.try(ctx)
		switch {
		case err != nil:
			return "", false, err
		case j != nil:
			return idOf(j), j.Annotations[submitAnnotation] != s.mark, nil
		}
		job.Pause(ctx, c.o.Every, try)
		if ctx.Err() != nil {
			return "", false, s.unanswered(context.Cause(ctx))
		}
	}
}

type submission struct {
	c       *Cluster
	job     job.Job
	mark    string // identifies the Jobs of this submission
	doubted bool   // an answer was lost; the Job may exist
	leaves  int    // how often an earlier Job of the key was seen while it was being deleted
}

// usual is how often a Job that is being deleted may be seen before the user is told.
const usual = 4

func (s *submission) unanswered(err error) error {
	if !s.doubted {
		return err
	}
	return &job.Unanswered{Scheduler: name, Key: s.job.Key, Cause: err,
		Remedy: "look for it with kubectl get job " + nameOf(s.job.Key)}
}

// detached returns a context for a request that may finish even if ctx ends.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	own, stop := api.Within(context.WithoutCancel(ctx))
	end := context.AfterFunc(ctx, func() { time.AfterFunc(lastWord, stop) })
	return own, func() { end(); stop() }
}

// try looks for the Job and creates it if there is none. It returns nil if the caller must try again.
func (s *submission) try(ctx context.Context) (*batchv1.Job, error) {
	c := s.c
	j, err := c.read(ctx, nameOf(s.job.Key))
	switch {
	case ctx.Err() != nil:
		return nil, s.unanswered(context.Cause(ctx))
	case err != nil:
		return nil, s.judge(err)
	case j != nil && j.Annotations[keyAnnotation] != s.job.Key:
		return nil, s.refused("there is a Job "+j.Name+" already, which is not benchgraph's", "delete that Job")
	case j != nil && j.DeletionTimestamp != nil:
		if s.leaves++; s.leaves > usual {
			c.troubles.Has(leaving, j.Name)
		}
		return nil, nil
	case j != nil && over(j):
		err := c.remove(ctx, j, metav1.DeletePropagationBackground)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return nil, s.judge(err)
		}
		return nil, nil
	}
	if j == nil {
		if j, err = s.create(ctx); err != nil || j == nil {
			return nil, err
		}
	}
	if err := s.equip(ctx, j); err != nil {
		return nil, err
	}
	c.answered()
	c.troubles.Over(full)
	c.troubles.Over(leaving)
	return j, nil
}

// create creates the Job; it returns nil if another submission was faster or there is no answer.
func (s *submission) create(ctx context.Context) (*batchv1.Job, error) {
	own, stop := detached(ctx)
	defer stop()
	made := &batchv1.Job{}
	err := s.c.api.To("POST", "jobs").Body(s.c.jobOf(s.job, s.mark)).Do(own).Into(made)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, nil
	case err != nil:
		return nil, s.judge(err)
	}
	return made, nil
}

// equip creates the Secret of a Job; without it the Pod does not start. The Job may be of another submitter that was
// killed before this step. A Job that cannot have its Secret is removed.
func (s *submission) equip(ctx context.Context, j *batchv1.Job) error {
	own, stop := detached(ctx)
	defer stop()
	secret, err := secretOf(j, s.job)
	for try := 0; err == nil; try++ {
		err = s.c.api.To("POST", "secrets").Body(secret).Do(own).Into(&corev1.Secret{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if api.Passes(err) && own.Err() == nil {
			s.c.has(err)
			job.Pause(own, s.c.o.Every, try)
			err = own.Err()
		}
	}
	if own.Err() != nil { // the next submission continues
		s.doubted = true
		return s.unanswered(context.Cause(own))
	}
	if j.Annotations[submitAnnotation] == s.mark {
		_ = s.c.remove(own, j, metav1.DeletePropagationBackground) // without its Secret it can never run
	}
	if _, ok := err.(*job.Refused); ok {
		return err
	}
	return s.judge(err)
}

// remove deletes one Job, but no later Job of the same name.
func (c *Cluster) remove(ctx context.Context, j *batchv1.Job, how metav1.DeletionPropagation) error {
	ctx, stop := api.Within(ctx)
	defer stop()
	return c.api.To("DELETE", "jobs").Name(j.Name).Body(&metav1.DeleteOptions{
		PropagationPolicy: &how, Preconditions: &metav1.Preconditions{UID: &j.UID}}).Do(ctx).Error()
}

// judge returns nil if the Job may be accepted later, and otherwise why it is refused.
func (s *submission) judge(err error) error {
	text := api.Words(err)
	if api.Passes(err) {
		s.doubted = true
		s.c.has(err)
		return nil
	}
	over, mine := quota(text)
	over = over || strings.Contains(text, "status unknown for quota") // the quota is new
	switch {
	case over && !mine: // other objects use the quota up, and will end
		s.c.troubles.Has(full, api.Words(err))
		return nil
	case over:
		return s.refused(text, "ask for less, or have the quota of the namespace raised")
	case apierrors.IsNotFound(err):
		return s.refused(text, api.WrongNamespace)
	case strings.Contains(text, "denied request"), strings.Contains(text, "denied the request"): // policies, webhooks
		return s.refused(text, ruled)
	case apierrors.IsForbidden(err) && strings.Contains(text, `User "`):
		return s.refused(text, "have the user given that right in the namespace "+s.c.api.Namespace)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return s.refused(text, "correct the attribute that it names in the executor block")
	}
	return s.refused(text, ruled)
}

const ruled = "ask for what the rules of the namespace allow"

func (s *submission) refused(words, remedy string) error {
	return &job.Refused{Scheduler: name, Name: s.job.Name, Words: words, Remedy: remedy}
}
