// Package kubetest starts a real API server of a Kubernetes cluster, with its store, for tests. The tests simulate
// the Job controller, the scheduler and the kubelet of one node: they write through the API what those would write,
// and run the commands of Pods as processes of this machine. It needs Linux, root, Debian's etcd-server, and the
// program that "make kubernetes" builds. With the script "run" beside this file, all components are real.
package kubetest

// Image is the image of tests; nothing pulls it.
const Image = "benchgraph.test/busybox:1"
