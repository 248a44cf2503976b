package kubetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node is the name of the simulated node.
const Node = "n1"

// devices is the number of the node's GPUs.
const devices = 4

// Nodes makes the simulated node, whose kubelet serves logs, unless it exists.
func (c *Cluster) Nodes() {
	c.t.Helper()
	ctx := context.Background()
	c.nodes.Lock()
	defer c.nodes.Unlock()
	if c.Core.Get().Resource("nodes").Name(Node).Do(ctx).Error() == nil {
		return
	}
	server := httptest.NewTLSServer(http.HandlerFunc(c.logs))
	c.t.Cleanup(server.Close)
	at := server.Listener.Addr().(*net.TCPAddr)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: Node, Labels: map[string]string{"kind": "played"}}}
	c.must(c.Core.Post().Resource("nodes").Body(n).Do(ctx).Into(n))
	has := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"),
		"pods": resource.MustParse("100"), "nvidia.com/gpu": *resource.NewQuantity(devices, resource.DecimalSI)}
	n.Spec.Taints = nil
	c.must(c.Core.Put().Resource("nodes").Name(Node).Body(n).Do(ctx).Into(n)) // remove the taint of a new node
	n.Status = corev1.NodeStatus{Capacity: has, Allocatable: has,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{
			KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(at.Port)}}}
	c.must(c.Core.Put().Resource("nodes").Name(Node).SubResource("status").Body(n).Do(ctx).Error())
}

// logs serves the output of a Pod, as a kubelet does: /containerLogs/NAMESPACE/POD/CONTAINER.
func (c *Cluster) logs(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) != 5 || parts[1] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	c.mu.Lock()
	run := c.pods[parts[2]+"/"+parts[3]]
	c.mu.Unlock()
	if run == nil {
		http.Error(w, fmt.Sprintf("container %q is waiting to start", parts[4]), http.StatusBadRequest)
		return
	}
	f, err := os.Open(run.out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	for over := r.URL.Query().Get("follow") != "true"; ; {
		if n, err := io.Copy(w, f); err != nil || n == 0 && over {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-run.done: // copy the rest
			over = true
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
