package kubetest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Control simulates the Job controller and the garbage collector in a namespace, unless they are real. Pods stay
// unchanged until the test writes their status.
func (c *Cluster) Control(t testing.TB, namespace string) { c.play(t, namespace, nil) }

// Play also simulates the scheduler and the kubelet of one node, which runs the commands of Pods with environ, as
// NAME=value, in addition to their own variables.
func (c *Cluster) Play(t testing.TB, namespace string, environ ...string) {
	c.play(t, namespace, append([]string{}, environ...))
}

func (c *Cluster) play(t testing.TB, namespace string, environ []string) {
	t.Helper()
	if c.Real() {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	c.Nodes()
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c.step(ctx, namespace, environ)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// Hold sets whether Pods of a namespace without a node stay without one.
func (c *Cluster) Hold(namespace string, held bool) {
	if c.Real() {
		c.hold(namespace, held)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[namespace] = held
}

// played is a Pod whose command runs or has run.
type played struct {
	cmd  *exec.Cmd
	out  string        // file with its output
	ends time.Time     // by the Pod's time limit; zero: no limit
	done chan struct{} // closed when the command has ended
}

// step handles the Jobs and Pods of a namespace once. The next step retries what failed.
func (c *Cluster) step(ctx context.Context, namespace string, environ []string) {
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	if c.Batch.Get().Namespace(namespace).Resource("jobs").Do(ctx).Into(jobs) != nil ||
		c.Core.Get().Namespace(namespace).Resource("pods").Do(ctx).Into(pods) != nil {
		return
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := slices.IndexFunc(jobs.Items, func(j batchv1.Job) bool {
			return len(p.OwnerReferences) > 0 && j.UID == p.OwnerReferences[0].UID
		})
		switch {
		case owner < 0 || jobs.Items[owner].DeletionTimestamp != nil:
			c.end(ctx, p)
		case environ == nil:
		case p.DeletionTimestamp != nil:
			c.end(ctx, p)
		case p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning:
			c.kubelet(ctx, p, environ)
		}
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		own := slices.DeleteFunc(slices.Clone(pods.Items), func(p corev1.Pod) bool {
			return len(p.OwnerReferences) == 0 || p.OwnerReferences[0].UID != j.UID
		})
		c.control(ctx, j, own)
	}
	c.mu.Lock()
	fewer := len(jobs.Items) < c.jobs[namespace]
	c.jobs[namespace] = len(jobs.Items)
	c.mu.Unlock()
	if fewer {
		c.collect(ctx, namespace)
	}
}

// collect deletes the Secrets whose Jobs are gone.
func (c *Cluster) collect(ctx context.Context, namespace string) {
	secrets, jobs := &corev1.SecretList{}, &batchv1.JobList{} // in this order: a Job exists before its Secret
	if c.Core.Get().Namespace(namespace).Resource("secrets").Do(ctx).Into(secrets) != nil ||
		c.Batch.Get().Namespace(namespace).Resource("jobs").Do(ctx).Into(jobs) != nil {
		return
	}
	for _, s := range secrets.Items {
		if len(s.OwnerReferences) > 0 && !slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool {
			return j.UID == s.OwnerReferences[0].UID
		}) {
			_ = c.Core.Delete().Namespace(namespace).Resource("secrets").Name(s.Name).Do(ctx).Error()
		}
	}
}

// control does the Job controller's work for one Job.
func (c *Cluster) control(ctx context.Context, j *batchv1.Job, pods []corev1.Pod) {
	switch {
	case j.DeletionTimestamp != nil:
		if len(pods) == 0 {
			_ = c.Batch.Patch(types.MergePatchType).Namespace(j.Namespace).Resource("jobs").Name(j.Name).
				Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(ctx).Error()
		}
	case slices.ContainsFunc(j.Status.Conditions, func(d batchv1.JobCondition) bool {
		return d.Type == batchv1.JobComplete || d.Type == batchv1.JobFailed
	}):
	case j.Spec.Suspend != nil && *j.Spec.Suspend:
		for i := range pods {
			c.end(ctx, &pods[i])
		}
	case len(pods) == 0 && j.Status.StartTime == nil:
		c.create(ctx, j)
	case len(pods) == 0:
		c.conclude(ctx, j, batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	case pods[0].Status.Phase == corev1.PodSucceeded:
		c.conclude(ctx, j, batchv1.JobComplete, "CompletionsReached", "")
	case pods[0].Status.Phase == corev1.PodFailed:
		reason, message := "BackoffLimitExceeded", "Job has reached the specified backoff limit"
		for _, d := range pods[0].Status.Conditions {
			if d.Type == corev1.DisruptionTarget && d.Status == corev1.ConditionTrue {
				reason, message = "PodFailurePolicy", "Pod "+pods[0].Name+" has condition DisruptionTarget"
			}
		}
		c.conclude(ctx, j, batchv1.JobFailed, reason, message)
	}
}

func (c *Cluster) create(ctx context.Context, j *batchv1.Job) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: j.Spec.Template.Spec}
	pod.Name = j.Name + "-" + string(j.UID[:5])
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID,
		Controller: &yes}}
	err := c.Core.Post().Namespace(j.Namespace).Resource("pods").Body(pod).Do(ctx).Error()
	if err != nil {
		now := metav1.Now()
		_ = c.Core.Post().Namespace(j.Namespace).Resource("events").Body(&corev1.Event{Type: "Warning",
			Reason: "FailedCreate", Message: "Error creating: " + err.Error(), FirstTimestamp: now, LastTimestamp: now,
			ObjectMeta: metav1.ObjectMeta{GenerateName: j.Name + "-"}, InvolvedObject: corev1.ObjectReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: j.Namespace, Name: j.Name, UID: j.UID}}).Do(ctx).Error()
		return
	}
	now := metav1.Now()
	j.Status.StartTime = &now
	c.write(ctx, c.Batch, "jobs", j.Namespace, j.Name, j)
}

// conclude writes the end of a Job.
func (c *Cluster) conclude(ctx context.Context, j *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	now := metav1.Now()
	if j.Status.StartTime == nil {
		j.Status.StartTime = &now
	}
	before := batchv1.JobFailureTarget
	if j.Status.Active, j.Status.Ready = 0, nil; kind == batchv1.JobComplete {
		before, j.Status.CompletionTime, j.Status.Succeeded = batchv1.JobSuccessCriteriaMet, &now, 1
	} else {
		j.Status.Failed = 1
	}
	for _, what := range []batchv1.JobConditionType{before, kind} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: what, Status: corev1.ConditionTrue,
			Reason: reason, Message: message, LastTransitionTime: now, LastProbeTime: now})
	}
	c.write(ctx, c.Batch, "jobs", j.Namespace, j.Name, j)
}

// write writes the status of an object.
func (c *Cluster) write(ctx context.Context, to rest.Interface, resource, namespace, name string,
	object runtime.Object) {
	err := to.Put().Namespace(namespace).Resource(resource).Name(name).SubResource("status").Body(object).Do(ctx).
		Error()
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) &&
		errors.As(err, new(apierrors.APIStatus)) {
		c.t.Errorf("status of %s: %v", name, err)
	}
}

// kubelet starts the command of a Pod and writes the Pod's status.
func (c *Cluster) kubelet(ctx context.Context, p *corev1.Pod, environ []string) {
	key := p.Namespace + "/" + p.Name
	c.mu.Lock()
	run, held := c.pods[key], c.held[p.Namespace]
	c.mu.Unlock()
	now := metav1.Now()
	gpus := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
	switch {
	case p.Spec.NodeName == "" && held:
		return
	case p.Spec.NodeName == "" && gpus.Value() > devices:
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}
	case p.Spec.NodeName == "":
		_ = c.Core.Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("binding").
			Body(&corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name},
				Target: corev1.ObjectReference{Kind: "Node", Name: Node}}).Do(ctx).Error()
		return
	case run == nil:
		run, err := c.start(ctx, p, environ)
		if err != nil { // such as a Secret that does not exist yet
			return
		}
		c.mu.Lock()
		c.pods[key] = run
		c.mu.Unlock()
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name,
			Image: p.Spec.Containers[0].Image, State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
	default:
		late := !run.ends.IsZero() && time.Now().After(run.ends)
		if late {
			run.kill()
		}
		select {
		case <-run.done:
		default:
			return
		}
		if late {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded"
			p.Status.Message = "Pod was active on the node longer than the specified deadline"
			break
		}
		status := run.cmd.ProcessState.Sys().(syscall.WaitStatus)
		code, reason := status.ExitStatus(), "Completed"
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		if p.Status.Phase = corev1.PodSucceeded; code != 0 {
			p.Status.Phase, reason = corev1.PodFailed, "Error"
		}
		began := now
		if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil {
			began = p.Status.ContainerStatuses[0].State.Running.StartedAt
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name,
			Image: p.Spec.Containers[0].Image, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: reason, StartedAt: began,
					FinishedAt: now}}}}
	}
	c.write(ctx, c.Core, "pods", p.Namespace, p.Name, p)
}

// end ends the command of a Pod, and deletes the Pod.
func (c *Cluster) end(ctx context.Context, p *corev1.Pod) {
	c.mu.Lock()
	run := c.pods[p.Namespace+"/"+p.Name]
	c.mu.Unlock()
	if run != nil {
		_ = syscall.Kill(-run.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-run.done:
		case <-time.After(2 * time.Second):
		}
		run.kill()
	}
	zero := int64(0)
	_ = c.Core.Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Do(ctx).Error()
}

// kill ends all processes of a Pod.
func (p *played) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// start runs the command of a Pod as the first process of a PID namespace, in its own mount namespace with the Pod's
// directories in memory.
func (c *Cluster) start(ctx context.Context, p *corev1.Pod, environ []string) (*played, error) {
	main := p.Spec.Containers[0]
	env := slices.Clone(environ)
	for _, from := range main.EnvFrom {
		s, err := c.secret(ctx, p.Namespace, from.SecretRef.Name)
		if err != nil {
			return nil, err
		}
		for name, value := range s.Data {
			env = append(env, name+"="+string(value))
		}
	}
	for _, v := range main.Env {
		label, _ := strings.CutPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.labels['")
		env = append(env, v.Name+"="+p.Labels[strings.TrimSuffix(label, "']")])
	}
	memory := []string{} // paths of the directories in memory
	for _, v := range p.Spec.Volumes {
		for _, m := range main.VolumeMounts {
			if v.EmptyDir != nil && m.Name == v.Name {
				memory = append(memory, m.MountPath)
			}
		}
	}
	run := &played{out: filepath.Join(c.dir, p.Name+".out"), done: make(chan struct{})}
	out, err := os.Create(run.out)
	if err != nil {
		return nil, err
	}
	run.cmd = exec.Command("/bin/sh", append([]string{"-c", `mount -t proc proc /proc || exit
		for d in $0; do mount -t tmpfs none "$d" || exit; done; exec "$@"`, strings.Join(memory, " ")},
		main.Command...)...)
	// two streams: a kubelet copies them to one file independently
	run.cmd.Env, run.cmd.Stdout, run.cmd.Stderr, run.cmd.Dir = env, io.MultiWriter(out), io.MultiWriter(out), "/"
	run.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	started := make(chan error)
	c.starts <- func() { started <- run.cmd.Start() }
	if err := <-started; err != nil {
		_ = out.Close()
		return nil, err
	}
	if limit := p.Spec.ActiveDeadlineSeconds; limit != nil {
		run.ends = time.Now().Add(time.Duration(*limit) * time.Second)
	}
	go func() {
		_ = run.cmd.Wait()
		_ = out.Close()
		close(run.done)
	}()
	c.t.Cleanup(run.kill)
	return run, nil
}

func (c *Cluster) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	return s, c.Core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(ctx).Into(s)
}
