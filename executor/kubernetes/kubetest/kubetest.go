// Package kubetest starts the control plane of a Kubernetes cluster for tests: a real etcd and a real API server. Where
// nothing else is started, the tests play the Job controller, the scheduler and the kubelet of one node: they write
// what those would write through the API, and run the commands of Pods as processes of this machine. It needs Linux,
// root, Debian's etcd-server, and what "make kubernetes" builds.
package kubetest

// Image is the name of an image that holds a shell.
const Image = "benchgraph.test/busybox:1"
