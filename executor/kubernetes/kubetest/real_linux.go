package kubetest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// real returns the directory in which the script "run" beside this file keeps the start of a node's kubelet; "" means
// that everything but the API server is simulated.
func real() string { return os.Getenv("BENCHGRAPH_TEST_NODE") }

// HasNode reports whether clusters have a real node.
func HasNode() bool { return real() != "" }

// Real reports whether controllers, scheduler and kubelet are real.
func (c *Cluster) Real() bool { return HasNode() }

// Picture returns the image of Pods, by digest.
func (c *Cluster) Picture() string {
	if !c.Real() {
		return "bench@sha256:" + strings.Repeat("0", 64)
	}
	text, err := os.ReadFile(filepath.Join(real(), "image"))
	c.must(err)
	return strings.TrimSpace(string(text))
}

// address is the node's address, see the script.
const address = "10.88.0.1"

// join starts the controllers, the scheduler and the kubelet of one node, and waits until the node is ready.
func (c *Cluster) join() {
	c.t.Helper()
	config := c.kubeconfig(c.dir, "admin", "default", c.address)
	c.run("kube-controller-manager", c.program("kube-controller-manager"), "--kubeconfig="+config,
		"--leader-elect=false", "--service-account-private-key-file="+c.path("key"), "--secure-port=0",
		"--cert-dir="+c.path("certs"), "--terminated-pod-gc-threshold=1000")
	c.run("kube-scheduler", c.program("kube-scheduler"), "--kubeconfig="+config, "--leader-elect=false",
		"--secure-port=0")
	settings, err := json.Marshal(map[string]any{"kind": "KubeletConfiguration",
		"apiVersion":   "kubelet.config.k8s.io/v1beta1",
		"failCgroupV1": false, "cgroupDriver": "cgroupfs", "failSwapOn": false, "resolvConf": "",
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "address": address,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": true},
			"webhook": map[string]any{"enabled": false}},
		"authorization": map[string]any{"mode": "AlwaysAllow"}, "maxPods": 200, "registryPullQPS": 100,
		"evictionHard": map[string]any{"memory.available": "50Mi", "nodefs.available": "20%",
			"imagefs.available": "1%"},
		"evictionPressureTransitionPeriod": "10s", "eventRecordQPS": 0, "nodeStatusUpdateFrequency": "4s",
		"serializeImagePulls": false, "volumeStatsAggPeriod": "10s", "shutdownGracePeriod": "0s",
	})
	c.must(err)
	c.must(os.WriteFile(c.path("kubelet.json"), settings, 0o600))
	c.agent = c.run("kubelet", filepath.Join(real(), "kubelet"), "--config="+c.path("kubelet.json"),
		"--kubeconfig="+config, "--hostname-override="+Node, "--node-ip="+address,
		"--cert-dir="+c.path("kubelet-certs"))
	c.until("the node is ready", func() bool {
		n := &corev1.Node{}
		if c.Core.Get().Resource("nodes").Name(Node).Do(context.Background()).Into(n) != nil {
			return false
		}
		for _, d := range n.Status.Conditions {
			if d.Type == corev1.NodeReady && d.Status == corev1.ConditionTrue {
				return len(n.Spec.Taints) == 0
			}
		}
		return false
	})
	// advertise GPUs as a device plugin would
	c.must(c.Core.Patch(types.JSONPatchType).Resource("nodes").Name(Node).SubResource("status").
		Body([]byte(`[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"4"}]`)).Do(context.Background()).
		Error())
	c.must(c.Core.Patch(types.MergePatchType).Resource("nodes").Name(Node).
		Body([]byte(`{"metadata":{"labels":{"kind":"played"}}}`)).Do(context.Background()).Error())
	c.gates()
	c.until("the node has devices", func() bool {
		n := &corev1.Node{}
		c.must(c.Core.Get().Resource("nodes").Name(Node).Do(context.Background()).Into(n))
		has := n.Status.Allocatable["nvidia.com/gpu"]
		return has.Value() == devices
	})
}

// until waits for a condition, at most 2 minutes.
func (c *Cluster) until(what string, is func() bool) {
	c.t.Helper()
	for begun := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			c.t.Fatalf("%s: not within 2 minutes", what)
		}
	}
}

// heldLabel marks namespaces whose Pods get a scheduling gate.
const heldLabel, gate = "held", "benchgraph.test/held"

// gates makes the API server give new Pods of held namespaces a gate.
func (c *Cluster) gates() {
	c.t.Helper()
	post := func(resource, object string) {
		err := c.Core.Post().AbsPath("/apis/admissionregistration.k8s.io/v1/"+resource).
			SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(context.Background()).Error()
		c.must(err)
	}
	post("mutatingadmissionpolicies", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicy",
		"metadata":{"name":"hold"},"spec":{"reinvocationPolicy":"Never","failurePolicy":"Fail","matchConstraints":{
		"namespaceSelector":{"matchLabels":{"`+heldLabel+`":"true"}},"resourceRules":[{"apiGroups":[""],
		"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"mutations":[{"patchType":
		"ApplyConfiguration","applyConfiguration":{"expression":"Object{spec: Object.spec{schedulingGates: [`+
		`Object.spec.schedulingGates{name: '`+gate+`'}]}}"}}]}}`)
	post("mutatingadmissionpolicybindings", `{"apiVersion":"admissionregistration.k8s.io/v1",
		"kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"hold"},"spec":{"policyName":"hold"}}`)
}

// hold makes new Pods of a namespace wait, or releases all. It returns when the API server applies the change.
func (c *Cluster) hold(namespace string, held bool) {
	c.t.Helper()
	ctx := context.Background()
	c.must(c.Core.Patch(types.MergePatchType).Resource("namespaces").Name(namespace).
		Body([]byte(`{"metadata":{"labels":{"` + heldLabel + `":"` + strconv.FormatBool(held) + `"}}}`)).Do(ctx).
		Error())
	c.until("Pods are held", func() bool {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "x", Image: Image}}}}
		c.must(c.Core.Post().Namespace(namespace).Resource("pods").Param("dryRun", "All").Body(probe).Do(ctx).
			Into(probe))
		return len(probe.Spec.SchedulingGates) > 0 == held
	})
	if held {
		return
	}
	pods := &corev1.PodList{}
	c.must(c.Core.Get().Namespace(namespace).Resource("pods").Do(ctx).Into(pods))
	for _, p := range pods.Items {
		if len(p.Spec.SchedulingGates) > 0 {
			_ = c.Core.Patch(types.MergePatchType).Namespace(namespace).Resource("pods").Name(p.Name).
				Body([]byte(`{"spec":{"schedulingGates":null}}`)).Do(ctx).Error() // it may have been deleted
		}
	}
}

// Halt stops the kubelet or lets it continue, as if the node were unreachable.
func (c *Cluster) Halt(halt bool) {
	c.t.Helper()
	c.must(c.agent.Signal(map[bool]os.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[halt]))
}

// Claim makes a claim for a directory of this machine, whose root the node has at /host.
func (c *Cluster) Claim(namespace, name, dir string) {
	c.t.Helper()
	if !c.Real() {
		return // simulated nodes use the directories of this machine
	}
	volume := namespace + "-" + name
	common := `"storageClassName":"","accessModes":["ReadWriteMany"],`
	c.must(c.Core.Post().Resource("persistentvolumes").SetHeader("Content-Type", "application/json").
		Body([]byte(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"` + volume + `"},
			"spec":{` + common + `"capacity":{"storage":"1Gi"},"hostPath":{"path":"/host` + dir + `"},
			"claimRef":{"namespace":"` + namespace + `","name":"` + name + `"}}}`)).Do(context.Background()).Error())
	c.Post(namespace, "persistentvolumeclaims", `{"apiVersion":"v1","kind":"PersistentVolumeClaim",
		"metadata":{"name":"`+name+`"},"spec":{`+common+`"volumeName":"`+volume+`",
		"resources":{"requests":{"storage":"1Gi"}}}}`)
}
