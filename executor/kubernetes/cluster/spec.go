package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/benchgraph/benchgraph/executor/job"
	"github.com/benchgraph/benchgraph/executor/kubernetes"
	"github.com/benchgraph/benchgraph/internal/printable"
)

const (
	// ours labels everything that benchgraph makes.
	ours, oursValue = "app.kubernetes.io/managed-by", "benchgraph"
	queueLabel      = "kueue.x-k8s.io/queue-name"

	keyAnnotation    = "benchgraph/key"
	nodeAnnotation   = "benchgraph/node"
	submitAnnotation = "benchgraph/submission" // identifies the submission that made a Job when an answer is lost

	gpus = "nvidia.com/gpu"
)

const (
	container = "job"
	// scriptVariable has the script. The entries of a Secret become variables of the container: measured programs
	// could read them as files.
	scriptVariable = "BENCHGRAPH_SCRIPT"
	// mostScript limits a script, in bytes. The kernel accepts variables of up to 128 KiB.
	mostScript = 96 << 10
	// memoryDir is a directory of a Pod in memory, so that the request is not written to a disk of the node.
	memoryDir = "/dev/shm"
	// keepFor is how long an ended Job stays.
	keepFor = 24 * time.Hour
	// mostSecret limits a Secret, in bytes; some space is left for its names.
	mostSecret = 1<<20 - 16<<10
)

// nameOf returns the name of the Job of a key. Two simultaneous submissions use the same name, and only one creates
// the Job.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "benchgraph-" + hex.EncodeToString(sum[:8])
}

// idOf returns the ID of a Job. The beginning of its UID distinguishes it from earlier Jobs of its key.
func idOf(j *batchv1.Job) job.ID {
	uid, _, _ := strings.Cut(string(j.UID), "-")
	return job.NewID(j.Name+"."+uid, j.Annotations[keyAnnotation])
}

// preamble sets the variable with the name of the job for the worker. The UID of a Job is known only after its
// creation.
const preamble = "unset " + scriptVariable + "\nexport " + job.NameVariable +
	`="$BENCHGRAPH_JOB_NAME.${BENCHGRAPH_JOB_UID%%-*}"
unset BENCHGRAPH_JOB_NAME BENCHGRAPH_JOB_UID
`

// secretOf returns the Secret of a job, whose entries become variables: its script, its request in parts, and its
// environment.
func secretOf(j *batchv1.Job, of job.Job) (*corev1.Secret, error) {
	refused := func(words string) error {
		return &job.Refused{Scheduler: name, Name: of.Name, Words: words,
			Remedy: "pass what is large in data of the block, and not in variables or setup"}
	}
	data, size := map[string][]byte{}, 0
	for _, v := range of.Environ {
		name, value, _ := strings.Cut(v, "=")
		data[name] = []byte(value)
		size += len(v)
	}
	parts, lines, err := job.Handed(of.Request, memoryDir, max(0, mostSecret-mostScript-size))
	if err != nil {
		return nil, refused(err.Error())
	}
	for name, part := range parts {
		data[name] = []byte(part)
	}
	script := preamble + lines + of.Script
	if len(script) > mostScript {
		return nil, refused(fmt.Sprintf("its script has %d bytes, and there is room for %d", len(script), mostScript))
	}
	data[scriptVariable] = []byte(script)
	yes := true
	return &corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: &yes, Data: data, ObjectMeta: metav1.ObjectMeta{
		Name: j.Name + "-" + secretSuffix(j), Labels: map[string]string{ours: oursValue},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID}},
	}}, nil
}

// secretSuffix distinguishes the Secret of a submission from earlier ones of its key, which may not be deleted yet.
func secretSuffix(j *batchv1.Job) string { return j.Annotations[submitAnnotation] }

func (c *Cluster) jobOf(of job.Job, submission string) *batchv1.Job {
	labels := map[string]string{ours: oursValue}
	own := maps.Clone(labels)
	if c.o.Queue != "" {
		own[queueLabel] = c.o.Queue
	}
	notes := map[string]string{keyAnnotation: of.Key, nodeAnnotation: job.Words(printable.Line(of.Name)),
		submitAnnotation: submission}
	keep, once := int32(keepFor/time.Second), int32(0)
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(of.Key), Labels: own, Annotations: notes},
		Spec: batchv1.JobSpec{
			BackoffLimit: &once, TTLSecondsAfterFinished: &keep,
			// A disrupted Pod is not a failure of its command. The Job keeps that information after the Pod is gone.
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionFailJob,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: notes},
				Spec:       c.podOf(of, nameOf(of.Key)+"-"+submission),
			},
		},
	}
	return j
}

// podOf returns the Pod template of a job. secret is the name of the Secret.
func (c *Cluster) podOf(of job.Job, secret string) corev1.PodSpec {
	no := false
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: c.o.NodeSelector, Tolerations: c.tolerations,
		ServiceAccountName: c.o.ServiceAccount,
		// Measured programs get neither the Pod's account nor variables that depend on other services.
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Volumes: []corev1.Volume{
			// Processes with several GPUs exchange more data there than the default of 64 MiB.
			{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory}}},
		},
	}
	if c.o.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: c.o.PullSecret}}
	}
	if of.Time > 0 { // limit of the Pod, so that the time in the queue does not count
		seconds := int64(of.Time / time.Second)
		pod.ActiveDeadlineSeconds = &seconds
	}
	if of.Exclusive {
		// An exclusive Pod admits no other Pod of benchgraph beside it, and is not placed beside one.
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:       "kubernetes.io/hostname",
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{ours: oursValue}},
				NamespaceSelector: &metav1.LabelSelector{},
			}},
		}}
	}
	pod.Affinity = avoid(pod.Affinity, of.Avoids)
	main := corev1.Container{
		Name: container, Image: c.o.Image,
		// one stream: a node mixes the lines of two streams in any order
		Command:   []string{"/bin/sh", "-c", `exec 2>&1; eval "$` + scriptVariable + `"`},
		Resources: resources(of), Env: environ(),
		VolumeMounts: []corev1.VolumeMount{{Name: "shm", MountPath: memoryDir}},
	}
	for i, at := range slices.Sorted(maps.Keys(c.o.Volumes)) {
		claim := "claim-" + strconv.Itoa(i)
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.o.Volumes[at]}}})
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: claim, MountPath: at})
	}
	for _, from := range append(slices.Clone(c.o.EnvFrom), secret) { // the last one wins
		main.EnvFrom = append(main.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: from}}})
	}
	pod.Containers = []corev1.Container{main}
	return pod
}

// avoid makes the scheduler prefer all other nodes. A requirement instead of a preference would let a Pod wait
// forever if there is no other node.
func avoid(a *corev1.Affinity, nodes []string) *corev1.Affinity {
	if len(nodes) == 0 {
		return a
	}
	if a == nil {
		a = &corev1.Affinity{}
	}
	var others []corev1.NodeSelectorRequirement
	for _, node := range slices.Sorted(slices.Values(nodes)) { // each requirement has one value
		others = append(others, corev1.NodeSelectorRequirement{Key: "metadata.name",
			Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
	}
	a.NodeAffinity = &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: others}}}}
	return a
}

// environ returns the variables of a job that are not in its Secret.
func environ() []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return []corev1.EnvVar{
		field("BENCHGRAPH_JOB_NAME", "metadata.labels['"+batchv1.JobNameLabel+"']"),
		field("BENCHGRAPH_JOB_UID", "metadata.labels['"+batchv1.ControllerUidLabel+"']"),
	}
}

// resources returns requests and limits of a job. They are equal, so that the node evicts such a Pod last.
func resources(of job.Job) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	add := func(name corev1.ResourceName, amount int64, format resource.Format) {
		if amount > 0 {
			list[name] = *resource.NewQuantity(amount, format)
		}
	}
	add(gpus, int64(of.GPUs), resource.DecimalSI)
	add(corev1.ResourceCPU, int64(of.CPUs), resource.DecimalSI)
	add(corev1.ResourceMemory, of.Memory, resource.BinarySI)
	return corev1.ResourceRequirements{Requests: list, Limits: list}
}

// tolerations parses taints, see kubernetes.IsToleration.
func tolerations(texts []string) (all []corev1.Toleration, err error) {
	for _, text := range texts {
		if !kubernetes.IsToleration(text) {
			return nil, fmt.Errorf("kubernetes: toleration %q: a taint is expected, as KEY=VALUE:EFFECT", text)
		}
		taint, effect, _ := strings.Cut(text, ":")
		key, value, equal := strings.Cut(taint, "=")
		t := corev1.Toleration{Key: key, Value: value, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffect(effect)}
		if equal {
			t.Operator = corev1.TolerationOpEqual
		}
		all = append(all, t)
	}
	return all, nil
}
