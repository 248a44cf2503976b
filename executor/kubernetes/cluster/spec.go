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
	// ours is the label of all that benchgraph makes.
	ours, oursValue = "app.kubernetes.io/managed-by", "benchgraph"
	queueLabel      = "kueue.x-k8s.io/queue-name"

	keyAnnotation    = "benchgraph/key"
	nodeAnnotation   = "benchgraph/node"
	submitAnnotation = "benchgraph/submission" // tells who made a Job when an answer is lost

	gpus = "nvidia.com/gpu"
)

const (
	container = "job"
	// scriptVariable has the script. The entries of a Secret are variables of the container: as files, what is measured
	// could read them.
	scriptVariable = "BENCHGRAPH_SCRIPT"
	// mostScript bounds a script, in bytes. The kernel takes variables of up to 128 KiB.
	mostScript = 96 << 10
	// memoryDir is the directory of a Pod that is in memory. The request is written to no disk of the node.
	memoryDir = "/dev/shm"
	// keepFor is how long a Job stays that has ended.
	keepFor = 24 * time.Hour
	// mostSecret is the greatest size of a Secret, in bytes; less some for its names.
	mostSecret = 1<<20 - 16<<10
)

// nameOf is the name of the Job of a key. Two who submit a job at once give the same name, and one of them gets it.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "benchgraph-" + hex.EncodeToString(sum[:8])
}

// idOf is the ID of a Job. The beginning of its UID tells it from earlier ones of its key.
func idOf(j *batchv1.Job) job.ID {
	uid, _, _ := strings.Cut(string(j.UID), "-")
	return job.NewID(j.Name+"."+uid, j.Annotations[keyAnnotation])
}

// preamble tells the worker the name of the job. The UID of a Job is known only when there is one.
const preamble = "unset " + scriptVariable + "\nexport " + job.NameVariable +
	`="$BENCHGRAPH_JOB_NAME.${BENCHGRAPH_JOB_UID%%-*}"
unset BENCHGRAPH_JOB_NAME BENCHGRAPH_JOB_UID
`

// secretOf is the Secret of a job, whose entries are variables: its script, its request in parts, and its variables.
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

// secretSuffix tells the Secret of a submission from those of others of its key, which may be on their way out.
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
			// A Pod that was ended for others is no failure of its command. The Job keeps that when the Pod is gone.
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

// podOf is what the Pod of a job is made from. Secret is the name of the Secret.
func (c *Cluster) podOf(of job.Job, secret string) corev1.PodSpec {
	no := false
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: c.o.NodeSelector, Tolerations: c.tolerations,
		ServiceAccountName: c.o.ServiceAccount,
		// What is measured gets neither the account of the Pod nor variables that depend on other services.
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Volumes: []corev1.Volume{
			// Processes of several GPUs exchange more there than the 64 MiB of an engine's default.
			{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory}}},
		},
	}
	if c.o.PullSecret != "" {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: c.o.PullSecret}}
	}
	if of.Time > 0 { // of the Pod, as the time in the queue does not count
		seconds := int64(of.Time / time.Second)
		pod.ActiveDeadlineSeconds = &seconds
	}
	if of.Exclusive {
		// from both sides: a Pod that is alone admits none of ours beside it, nor do they admit it
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
		// in one stream: a node mixes the lines of two in an order of its own
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
	for _, from := range append(slices.Clone(c.o.EnvFrom), secret) { // the last one counts
		main.EnvFrom = append(main.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: from}}})
	}
	pod.Containers = []corev1.Container{main}
	return pod
}

// avoid has a scheduler prefer all other nodes. With a demand in its place a Pod would wait for ever where there is no
// other node.
func avoid(a *corev1.Affinity, nodes []string) *corev1.Affinity {
	if len(nodes) == 0 {
		return a
	}
	if a == nil {
		a = &corev1.Affinity{}
	}
	var others []corev1.NodeSelectorRequirement
	for _, node := range slices.Sorted(slices.Values(nodes)) { // each takes one value
		others = append(others, corev1.NodeSelectorRequirement{Key: "metadata.name",
			Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
	}
	a.NodeAffinity = &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: others}}}}
	return a
}

// environ are the variables of a job that its Secret does not have.
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

// resources are what a job asks for, and gets no more of: with requests as large as limits, a Pod is among the last
// that a node evicts.
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

// tolerations reads taints, see kubernetes.IsToleration.
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
